# What the module makes, told by the arguments and the whole text of each policy. No account is asked.

mock_provider "aws" {
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs", version = "7" }
  }
  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters", url = "https://sqs.example/dbjobs-dead-letters" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/dbjobs" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick" }
  }
  mock_resource "aws_scheduler_schedule" {
    defaults = { arn = "arn:aws:scheduler:eu-central-1:111122223333:schedule/default/dbjobs-tick" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/dbjobs-function" }
  }
}

variables {
  zip                         = "tests/function.zip"
  database_secret_arn         = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
}

run "function" {
  assert {
    condition     = aws_lambda_function.this.runtime == "provided.al2023" && aws_lambda_function.this.handler == "bootstrap" && tolist(aws_lambda_function.this.architectures) == tolist(["arm64"])
    error_message = "the function is not what the zip file is for"
  }
  assert {
    condition = aws_lambda_function.this.environment[0].variables == tomap({
      DBJOBS_NAME                = "dbjobs"
      DBJOBS_MARGIN              = "3s"
      DBJOBS_METRICS             = "emf"
      DBJOBS_DATABASE_SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
    })
    error_message = "the function's variables are others"
  }
  assert {
    condition     = aws_lambda_function.this.publish && aws_lambda_alias.live.function_version == "7"
    error_message = "the alias does not follow the published version, so on_startup has no identity"
  }
  assert {
    condition     = aws_lambda_function.this.reserved_concurrent_executions == 2
    error_message = "concurrency is not bounded"
  }
  assert {
    condition     = aws_lambda_function.this.dead_letter_config[0].target_arn == aws_sqs_queue.dead_letters.arn && aws_sqs_queue.dead_letters.sqs_managed_sse_enabled
    error_message = "what failed is not kept, encrypted"
  }
  assert {
    condition     = aws_lambda_function.this.logging_config[0].log_group == "/aws/lambda/dbjobs" && aws_cloudwatch_log_group.this.retention_in_days == 30
    error_message = "logs are kept elsewhere, or for ever"
  }
  assert {
    condition     = length(aws_lambda_function.this.vpc_config) == 0 && length(aws_security_group.function) == 0
    error_message = "without vpc there is one"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.live.maximum_retry_attempts == 0 && aws_lambda_function_event_invoke_config.live.qualifier == "live" && aws_lambda_function_event_invoke_config.live.maximum_event_age_in_seconds == 60
    error_message = "a start is tried again, or its settings are not those of the alias"
  }
}

run "allowed" {
  variables {
    allow = ["migrate", "status"]
  }

  assert {
    condition     = aws_lambda_function.this.environment[0].variables["DBJOBS_LAMBDA_ALLOW"] == "migrate,status"
    error_message = "events may ask for something else than what is allowed"
  }
}

run "manifests" {
  variables {
    allow     = ["apply"]
    manifests = ["s3://acme-config/jobs/", "s3://acme-config/night.yaml"]
  }

  assert {
    condition     = aws_lambda_function.this.environment[0].variables["DBJOBS_MANIFESTS"] == "s3://acme-config/jobs/,s3://acme-config/night.yaml"
    error_message = "events may read something else than what is named"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s if s.Sid == "ReadManifests"] == [{
      Sid      = "ReadManifests"
      Effect   = "Allow"
      Action   = ["s3:GetObject"]
      Resource = ["arn:aws:s3:::acme-config/jobs/*", "arn:aws:s3:::acme-config/night.yaml"]
    }]
    error_message = "the function may read more of S3 than manifests, or not these"
  }
}

run "rights" {
  assert {
    condition = jsondecode(aws_iam_role_policy.function.policy) == {
      Version = "2012-10-17"
      Statement = [
        {
          Sid      = "WriteLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/dbjobs:*"
        },
        {
          Sid      = "KeepWhatFailed"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters"
        },
        {
          Sid      = "ReadTheSecret"
          Effect   = "Allow"
          Action   = ["secretsmanager:GetSecretValue"]
          Resource = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
        },
      ]
    }
    error_message = "the function's rights are others: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition = jsondecode(aws_iam_role.function.assume_role_policy) == {
      Version   = "2012-10-17"
      Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]
    }
    error_message = "others than Lambda may take the role"
  }
}

run "rule" {
  assert {
    condition     = aws_cloudwatch_event_rule.tick[0].schedule_expression == "rate(1 minute)" && aws_cloudwatch_event_rule.tick[0].state == "ENABLED"
    error_message = "there is no tick a minute"
  }
  assert {
    condition     = aws_cloudwatch_event_target.tick[0].arn == aws_lambda_alias.live.arn && aws_cloudwatch_event_target.tick[0].retry_policy[0].maximum_retry_attempts == 0 && aws_cloudwatch_event_target.tick[0].dead_letter_config[0].arn == aws_sqs_queue.dead_letters.arn
    error_message = "the rule starts something else, tries again, or forgets"
  }
  assert {
    condition = (
      aws_lambda_permission.rule[0].principal == "events.amazonaws.com" && aws_lambda_permission.rule[0].qualifier == "live" && aws_lambda_permission.rule[0].action == "lambda:InvokeFunction" &&
      aws_lambda_permission.rule[0].source_arn == "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick"
    )
    error_message = "not just this rule may start just this alias"
  }
  assert {
    condition = jsondecode(aws_sqs_queue_policy.dead_letters[0].policy).Statement == [{
      Sid       = "KeepWhatTheRulesCouldNotStart"
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters"
      Principal = { Service = "events.amazonaws.com" }
      Condition = { ArnEquals = { "aws:SourceArn" = ["arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick"] } }
    }]
    error_message = "others than this rule may fill the queue"
  }
  assert {
    condition     = length(aws_scheduler_schedule.tick) == 0 && length(aws_iam_role.scheduler) == 0 && output.trigger_arn == aws_cloudwatch_event_rule.tick[0].arn
    error_message = "there are two triggers"
  }
}

run "scheduler" {
  variables {
    trigger             = "scheduler"
    schedule_expression = "cron(*/5 8-18 ? * MON-FRI *)"
    no_tick_minutes     = 30
  }

  assert {
    condition = (
      aws_scheduler_schedule.tick[0].schedule_expression == "cron(*/5 8-18 ? * MON-FRI *)" && aws_scheduler_schedule.tick[0].state == "ENABLED" &&
      aws_scheduler_schedule.tick[0].flexible_time_window[0].mode == "OFF" && aws_scheduler_schedule.tick[0].target[0].arn == aws_lambda_alias.live.arn &&
      aws_scheduler_schedule.tick[0].target[0].retry_policy[0].maximum_retry_attempts == 0 && aws_scheduler_schedule.tick[0].target[0].dead_letter_config[0].arn == aws_sqs_queue.dead_letters.arn
    )
    error_message = "the schedule starts something else, tries again, or forgets"
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.scheduler[0].policy) == {
      Version = "2012-10-17"
      Statement = [
        { Sid = "StartTheFunction", Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live" },
        { Sid = "KeepWhatCouldNotBeStarted", Effect = "Allow", Action = ["sqs:SendMessage"], Resource = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters" },
      ]
    }
    error_message = "Scheduler's rights are others"
  }
  assert {
    condition = jsondecode(aws_iam_role.scheduler[0].assume_role_policy).Statement[0] == {
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = {
        "aws:SourceAccount" = "111122223333"
        "aws:SourceArn"     = "arn:aws:scheduler:eu-central-1:111122223333:schedule-group/default"
      } }
    }
    error_message = "others than this account's Scheduler may take the role"
  }
  assert {
    condition     = length(aws_cloudwatch_event_rule.tick) == 0 && length(aws_lambda_permission.rule) == 0 && length(aws_sqs_queue_policy.dead_letters) == 0
    error_message = "there are two triggers, or rights of the other one"
  }
}

run "off" {
  variables {
    trigger = "scheduler"
    wake    = true
    enabled = false
  }

  assert {
    condition     = aws_scheduler_schedule.tick[0].state == "DISABLED" && length(aws_iam_role.scheduler) == 1 && length(aws_iam_role_policy.scheduler) == 0
    error_message = "the trigger, or an alarm that a pass has set, still starts a tick"
  }
  assert {
    condition     = !aws_cloudwatch_metric_alarm.this["no-tick"].actions_enabled && aws_cloudwatch_metric_alarm.this["errors"].actions_enabled
    error_message = "a trigger that is off raises the alarm of missing ticks"
  }
}

run "wake" {
  variables {
    wake              = true
    wake_lead_seconds = 20
  }

  assert {
    condition     = aws_cloudwatch_event_rule.tick[0].schedule_expression == "rate(1 hour)" && length(aws_scheduler_schedule.tick) == 0
    error_message = "there is no safety trigger, or a tick a minute"
  }
  assert {
    condition = { for name, value in aws_lambda_function.this.environment[0].variables : name => value if startswith(name, "DBJOBS_WAKE") } == {
      DBJOBS_WAKE              = "aws-scheduler"
      DBJOBS_WAKE_LEAD         = "20s"
      DBJOBS_WAKE_NAME         = "dbjobs-wake"
      DBJOBS_WAKE_TARGET       = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live"
      DBJOBS_WAKE_ROLE         = aws_iam_role.scheduler[0].arn
      DBJOBS_WAKE_DEAD_LETTERS = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters"
    }
    error_message = "the function's variables are others"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s if contains(["SetAlarms", "GiveThemTheRole"], s.Sid)] == [
      {
        Sid      = "SetAlarms"
        Effect   = "Allow"
        Action   = ["scheduler:CreateSchedule"]
        Resource = "arn:aws:scheduler:eu-central-1:111122223333:schedule/default/dbjobs-wake-*"
      },
      {
        Sid       = "GiveThemTheRole"
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = aws_iam_role.scheduler[0].arn
        Condition = { StringEquals = { "iam:PassedToService" = "scheduler.amazonaws.com" } }
      },
    ]
    error_message = "the function may set other alarms, or give them another role: ${aws_iam_role_policy.function.policy}"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.scheduler[0].policy).Statement[0] == { Sid = "StartTheFunction", Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live" }
    error_message = "an alarm may not start the function, or more than that"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.live.maximum_retry_attempts == 2 && aws_cloudwatch_metric_alarm.this["no-tick"].evaluation_periods == 75
    error_message = "a pass that could not set an alarm is not tried again, or an hour without one is an alarm"
  }
}

run "alarms" {
  variables {
    alarm_actions   = ["arn:aws:sns:eu-central-1:111122223333:pager"]
    no_tick_minutes = 7
    overdue_minutes = 10
  }

  assert {
    condition     = toset(keys(aws_cloudwatch_metric_alarm.this)) == toset(["errors", "throttles", "no-tick", "overdue", "failing", "parked", "paused", "queued", "lost"])
    error_message = "an alarm is missing"
  }
  assert {
    condition     = alltrue([for a in aws_cloudwatch_metric_alarm.this : a.alarm_actions == toset(["arn:aws:sns:eu-central-1:111122223333:pager"]) && a.ok_actions == a.alarm_actions && a.actions_enabled == !endswith(a.alarm_name, "-paused") && a.period == 60])
    error_message = "an alarm tells nobody"
  }
  assert {
    condition = (
      aws_cloudwatch_metric_alarm.this["no-tick"].treat_missing_data == "breaching" && aws_cloudwatch_metric_alarm.this["no-tick"].evaluation_periods == 7 &&
      aws_cloudwatch_metric_alarm.this["no-tick"].comparison_operator == "GreaterThanThreshold" && aws_cloudwatch_metric_alarm.this["no-tick"].statistic == "Minimum" && aws_cloudwatch_metric_alarm.this["no-tick"].threshold == 0 &&
      aws_cloudwatch_metric_alarm.this["no-tick"].namespace == "dbjobs" && aws_cloudwatch_metric_alarm.this["no-tick"].metric_name == "errors" && aws_cloudwatch_metric_alarm.this["no-tick"].dimensions == tomap({ name = "dbjobs" })
    )
    error_message = "ticks may be missing unnoticed"
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.this["overdue"].threshold == 600 && aws_cloudwatch_metric_alarm.this["overdue"].metric_name == "late_seconds" && aws_cloudwatch_metric_alarm.this["overdue"].statistic == "Maximum"
    error_message = "what is overdue is not noticed"
  }
  assert {
    condition     = alltrue([for name in ["errors", "throttles"] : aws_cloudwatch_metric_alarm.this[name].dimensions == tomap({ FunctionName = "dbjobs" }) && aws_cloudwatch_metric_alarm.this[name].threshold == 0 && aws_cloudwatch_metric_alarm.this[name].treat_missing_data == "notBreaching"])
    error_message = "errors or throttles go unnoticed"
  }
}

run "without_metrics" {
  variables {
    metrics = false
  }

  assert {
    condition     = aws_lambda_function.this.environment[0].variables["DBJOBS_METRICS"] == "none" && toset(keys(aws_cloudwatch_metric_alarm.this)) == toset(["errors", "throttles", "no-tick"])
    error_message = "metrics are billed, or an alarm waits for one"
  }
  assert {
    condition = (
      aws_cloudwatch_metric_alarm.this["no-tick"].namespace == "AWS/Lambda" && aws_cloudwatch_metric_alarm.this["no-tick"].metric_name == "Invocations" && aws_cloudwatch_metric_alarm.this["no-tick"].statistic == "Sum" &&
      aws_cloudwatch_metric_alarm.this["no-tick"].comparison_operator == "LessThanThreshold" && aws_cloudwatch_metric_alarm.this["no-tick"].threshold == 1 && aws_cloudwatch_metric_alarm.this["no-tick"].treat_missing_data == "breaching"
    )
    error_message = "ticks may be missing unnoticed"
  }
}

run "permissions_boundary" {
  variables {
    trigger                  = "scheduler"
    permissions_boundary_arn = "arn:aws:iam::111122223333:policy/boundary"
  }

  assert {
    condition     = aws_iam_role.function.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary" && aws_iam_role.scheduler[0].permissions_boundary == "arn:aws:iam::111122223333:policy/boundary"
    error_message = "a role is made without the boundary that the account asks for"
  }
}

run "key" {
  variables {
    database_secret_kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s if s.Sid == "DecryptTheSecret"] == [{
      Sid       = "DecryptTheSecret"
      Effect    = "Allow"
      Action    = ["kms:Decrypt"]
      Resource  = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
      Condition = { StringLike = { "kms:ViaService" = "secretsmanager.eu-central-1.*" } }
    }]
    error_message = "the key is used for more than this secret, or not at all"
  }
}

run "key_in_china" {
  state_key = "china" # another account
  variables {
    database_secret_arn         = "arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:prod/db-AbC123"
    database_secret_kms_key_arn = "arn:aws-cn:kms:cn-north-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
  }

  override_resource {
    target = aws_cloudwatch_log_group.this
    values = { arn = "arn:aws-cn:logs:cn-north-1:111122223333:log-group:/aws/lambda/dbjobs" }
  }

  # IAM compares with * as this does. In China, the name of a service ends in .cn.
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement :
    can(regex("^${replace(replace(s.Condition.StringLike["kms:ViaService"], ".", "\\."), "*", ".*")}$", "secretsmanager.cn-north-1.amazonaws.com.cn")) if s.Sid == "DecryptTheSecret"] == [true]
    error_message = "the secret could not be decrypted in China"
  }
}

run "token_instead_of_a_secret" {
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
    database_url                = "postgres://jobs@db.example.org/app?sslmode=verify-full"
    rds_iam_user_arns           = ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABCDEFGHIJ/jobs"]
  }

  assert {
    condition     = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Sid] == ["WriteLogs", "KeepWhatFailed", "LogIn"]
    error_message = "the rights are others"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.function.policy).Statement[2].Action == ["rds-db:connect"] && jsondecode(aws_iam_role_policy.function.policy).Statement[2].Resource == ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABCDEFGHIJ/jobs"]
    error_message = "the function may log in as somebody else"
  }
  assert {
    condition     = aws_lambda_function.this.environment[0].variables["DBJOBS_DATABASE_AUTH"] == "rds-iam" && try(length(aws_lambda_function.this.layers), 0) == 0 && !contains(keys(aws_lambda_function.this.environment[0].variables), "DBJOBS_DATABASE_SECRET_ARN")
    error_message = "the function is not told to make a token"
  }
}

# The secrets that jobs use are read by the layer, too.
run "token_beside_secrets_of_jobs" {
  variables {
    database_secret_arn = null
    database_url        = "postgres://jobs@db.example.org/app?sslmode=verify-full"
    rds_iam_user_arns   = ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABCDEFGHIJ/jobs"]
    secret_arns         = ["arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/hook-AbC123"]
    environment         = { DBJOBS_CONFIG = "secrets: {HOOK: {value_aws_secret: 'arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/hook-AbC123'}}" }
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s if s.Sid == "ReadSecretsOfJobs"] == [{
      Sid      = "ReadSecretsOfJobs"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = ["arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/hook-AbC123"]
    }]
    error_message = "the function may read other secrets, or not this one"
  }
  assert {
    condition     = aws_lambda_function.this.layers == tolist([var.secrets_extension_layer_arn]) && aws_lambda_function.this.environment[0].variables["DBJOBS_DATABASE_AUTH"] == "rds-iam"
    error_message = "the function does not have the layer, or does not log in with a token"
  }
}

run "vpc" {
  variables {
    vpc = {
      id                         = "vpc-0123456789abcdef0"
      subnet_ids                 = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
      database_port              = 3306
      database_security_group_id = "sg-0123456789abcdef0"
      database_cidr_blocks       = ["10.9.0.0/24"]
    }
  }

  assert {
    condition     = aws_lambda_function.this.vpc_config[0].subnet_ids == toset(["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]) && aws_lambda_function.this.vpc_config[0].security_group_ids == toset([output.security_group_id])
    error_message = "the function is not in the VPC"
  }
  assert {
    condition = (
      aws_vpc_security_group_egress_rule.database[0].from_port == 3306 && aws_vpc_security_group_egress_rule.database[0].to_port == 3306 && aws_vpc_security_group_egress_rule.database[0].referenced_security_group_id == "sg-0123456789abcdef0" &&
      aws_vpc_security_group_ingress_rule.database[0].from_port == 3306 && aws_vpc_security_group_ingress_rule.database[0].security_group_id == "sg-0123456789abcdef0" && aws_vpc_security_group_ingress_rule.database[0].referenced_security_group_id == output.security_group_id &&
      aws_vpc_security_group_egress_rule.database_cidr["10.9.0.0/24"].from_port == 3306 && aws_vpc_security_group_egress_rule.https[0].to_port == 443
    )
    error_message = "the way to the database is closed, or others are open"
  }
  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s if !contains(["WriteLogs", "KeepWhatFailed", "ReadTheSecret"], s.Sid)] == [
      {
        Sid      = "AttachToTheVpc"
        Effect   = "Allow"
        Action   = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
        Resource = "*"
      },
      {
        Sid       = "ButNotFromInside"
        Effect    = "Deny"
        Action    = ["ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"]
        Resource  = "*"
        Condition = { ArnEquals = { "lambda:SourceFunctionArn" = ["arn:aws:lambda:eu-central-1:111122223333:function:dbjobs"] } }
      },
    ]
    error_message = "the rights in the VPC are others"
  }
}

run "url_of_several_hosts" {
  command = plan
  variables {
    database_url = "postgres://jobs@[::1]:5432,db2.example.org:6432/app?sslmode=verify-full&sslrootcert=/var/task/rds.pem"
  }
}

run "url_of_a_socket" {
  command = plan
  variables {
    database_url = "mysql://jobs@/app?socket=/mnt/mysql.sock"
  }
}

# Names and texts that look like secrets, and are none.
run "environment" {
  variables {
    environment = {
      PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE = "10"
      SECRETS_MANAGER_TTL                     = "60"
      SECRETS_MANAGER_TIMEOUT_MILLIS          = "500"
      OTHER                                   = jsonencode({ heartbeat = "https://hc-ping.com/0a1b2c3d", mail = { from = "jobs@example.org" } })

      DBJOBS_CONFIG = <<-EOT
        heartbeat: https://hc-ping.com/0a1b2c3d
        mail: {server: smtp.example.org, from: jobs@example.org}
      EOT
    }
  }
  assert {
    condition     = aws_lambda_function.this.environment[0].variables["SECRETS_MANAGER_TTL"] == "60" && strcontains(aws_lambda_function.this.environment[0].variables["DBJOBS_CONFIG"], "jobs@example.org")
    error_message = "the function does not get its variables"
  }
}
