# A function that runs one pass of dbjobs, with the rights for that and no others. What starts it is in trigger.tf.

locals {
  zip = coalesce(var.zip, "${path.module}/../../.build/lambda.zip")

  # arn:PARTITION:logs:REGION:ACCOUNT:...
  here      = split(":", aws_cloudwatch_log_group.this.arn)
  partition = local.here[1]
  region    = local.here[3]
  account   = local.here[4]

  environment = merge(
    var.environment,
    {
      DBJOBS_NAME    = var.name
      DBJOBS_MARGIN  = "${var.margin_seconds}s"
      DBJOBS_METRICS = var.metrics ? "emf" : "none"
    },
    var.database_url == null ? {} : { DBJOBS_DATABASE_URL = var.database_url },
    var.database_secret_arn == null ? {} : { DBJOBS_DATABASE_SECRET_ARN = var.database_secret_arn },
    length(var.rds_iam_user_arns) == 0 ? {} : { DBJOBS_DATABASE_AUTH = "rds-iam" },
    length(var.allow) == 0 ? {} : { DBJOBS_LAMBDA_ALLOW = join(",", var.allow) },
    length(var.manifests) == 0 ? {} : { DBJOBS_MANIFESTS = join(",", var.manifests) },
    !var.wake ? {} : {
      DBJOBS_WAKE              = "aws-scheduler"
      DBJOBS_WAKE_LEAD         = "${var.wake_lead_seconds}s"
      DBJOBS_WAKE_NAME         = local.alarm_name
      DBJOBS_WAKE_TARGET       = "arn:${local.partition}:lambda:${local.region}:${local.account}:function:${var.name}:live" # the function comes before its alias
      DBJOBS_WAKE_ROLE         = aws_iam_role.scheduler[0].arn
      DBJOBS_WAKE_DEAD_LETTERS = aws_sqs_queue.dead_letters.arn
    },
  )

  # The names of alarms begin with this. Their times follow.
  alarm_name = "${var.name}-wake"
}

# Made here and not by Lambda, which would keep the logs for ever.
resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "this" {
  function_name    = var.name
  description      = "One pass of dbjobs"
  role             = aws_iam_role.function.arn
  package_type     = "Zip"
  filename         = local.zip
  source_code_hash = fileexists(local.zip) ? filebase64sha256(local.zip) : null
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  layers           = var.secrets_extension_layer_arn == null ? null : [var.secrets_extension_layer_arn]
  timeout          = var.timeout_seconds
  memory_size      = var.memory_mb

  reserved_concurrent_executions = var.reserved_concurrency

  # A version has a number, and that is the identity of a start: jobs with on_startup run once for each version.
  publish = true

  environment {
    variables = local.environment
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.dead_letters.arn
  }

  logging_config {
    log_format = "Text" # the lines are JSON already, some of them with metrics in it
    log_group  = aws_cloudwatch_log_group.this.name
  }

  dynamic "vpc_config" {
    for_each = var.vpc == null ? [] : [var.vpc]
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = [aws_security_group.function[0].id]
    }
  }

  tags = var.tags

  lifecycle {
    precondition {
      condition     = fileexists(local.zip)
      error_message = "There is no file ${local.zip}; run `make lambda.zip`, or set zip."
    }
  }

  # Lambda tries the role's rights when it makes and when it removes the function.
  depends_on = [aws_iam_role_policy.function]
}

# The trigger starts the newest version by this name.
resource "aws_lambda_alias" "live" {
  name             = "live"
  description      = "The version that the trigger starts"
  function_name    = aws_lambda_function.this.function_name
  function_version = aws_lambda_function.this.version
}

# The next minute is the retry; where alarms are set, Lambda is. These settings belong to the alias: those of the function do not count for it.
resource "aws_lambda_function_event_invoke_config" "live" {
  function_name                = aws_lambda_function.this.function_name
  qualifier                    = aws_lambda_alias.live.name
  maximum_retry_attempts       = var.wake ? 2 : 0
  maximum_event_age_in_seconds = var.wake ? 3600 : 60
}

# Starts that came to nothing: the pass failed, was throttled for a minute, or could not be invoked.
resource "aws_sqs_queue" "dead_letters" {
  name                      = "${var.name}-dead-letters"
  message_retention_seconds = 1209600 # 14 days, the most there is
  sqs_managed_sse_enabled   = true
  tags                      = var.tags
}
