resource "aws_iam_role" "function" {
  name        = "${var.name}-function"
  description = "What the function ${var.name} may do"
  tags        = var.tags

  permissions_boundary = var.permissions_boundary_arn

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "function"
  role = aws_iam_role.function.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "WriteLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.this.arn}:*"
        },
        {
          Sid      = "KeepWhatFailed"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = aws_sqs_queue.dead_letters.arn
        },
      ],
      var.database_secret_arn == null ? [] : [{
        Sid      = "ReadTheSecret"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = var.database_secret_arn
      }],
      length(var.secret_arns) == 0 ? [] : [{
        Sid      = "ReadSecretsOfJobs"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = var.secret_arns
      }],
      var.database_secret_kms_key_arn == null ? [] : [{
        Sid      = "DecryptTheSecret"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = var.database_secret_kms_key_arn
        # AWS itself says by which service a request came. The domain after the region differs between the parts of AWS.
        Condition = {
          StringLike = { "kms:ViaService" = "secretsmanager.${local.region}.*" }
        }
      }],
      length(var.rds_iam_user_arns) == 0 ? [] : [{
        Sid      = "LogIn"
        Effect   = "Allow"
        Action   = ["rds-db:connect"]
        Resource = var.rds_iam_user_arns
      }],
      length(var.manifests) == 0 ? [] : [{
        Sid      = "ReadManifests"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [for url in var.manifests : "arn:${local.partition}:s3:::${trimprefix(url, "s3://")}${endswith(url, "/") ? "*" : ""}"]
      }],
      [for statement in [
        {
          Sid      = "SetAlarms"
          Effect   = "Allow"
          Action   = ["scheduler:CreateSchedule"]
          Resource = "arn:${local.partition}:scheduler:${local.region}:${local.account}:schedule/default/${local.alarm_name}-*"
        },
        {
          Sid       = "GiveThemTheRole"
          Effect    = "Allow"
          Action    = ["iam:PassRole"]
          Resource  = one(aws_iam_role.scheduler[*].arn)
          Condition = { StringEquals = { "iam:PassedToService" = "scheduler.amazonaws.com" } }
        },
      ] : statement if var.wake],
      # Lambda itself attaches the function to the VPC, in the role's name. These actions know no resource that could
      # be named beforehand, so the code inside the function is denied them.
      [for statement in [
        {
          Sid      = "AttachToTheVpc"
          Effect   = "Allow"
          Action   = local.vpc_actions
          Resource = "*"
        },
        {
          Sid      = "ButNotFromInside"
          Effect   = "Deny"
          Action   = local.vpc_actions
          Resource = "*"
          # By their names: the functions come after their rights.
          Condition = { ArnEquals = { "lambda:SourceFunctionArn" = [for name in concat([var.name], [for queue in keys(var.workers) : "${var.name}-${queue}"]) : "arn:${local.partition}:lambda:${local.region}:${local.account}:function:${name}"] } }
        },
      ] : statement if var.vpc != null],
    )
  })
}

locals {
  vpc_actions = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
  ]
}
