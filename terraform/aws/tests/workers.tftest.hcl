# Functions for queues that ticks leave to workers, and what they share with the function of the ticks.

mock_provider "aws" {
  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters", url = "https://sqs.example/dbjobs-dead-letters" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/dbjobs" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/dbjobs-function" }
  }
  override_resource {
    target = aws_cloudwatch_event_rule.tick
    values = { arn = "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick" }
  }
  override_resource {
    target = aws_cloudwatch_event_rule.worker
    values = { arn = "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-reports" }
  }
  override_resource {
    target = aws_lambda_function.this
    values = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs", version = "7" }
  }
  override_resource {
    target = aws_lambda_function.worker
    values = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs-reports" }
  }
}

variables {
  zip                         = "tests/function.zip"
  database_secret_arn         = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
  allow                       = ["apply"]
  manifests                   = ["s3://acme-config/jobs/"]
  environment                 = { DBJOBS_CONCURRENCY = "8" }
  workers                     = { reports = {} }
}

run "worker" {
  assert {
    condition = (
      toset(keys(aws_lambda_function.worker)) == toset(["reports"]) && aws_lambda_function.worker["reports"].function_name == "dbjobs-reports" && aws_lambda_function.worker["reports"].timeout == 300 &&
      aws_lambda_function.worker["reports"].memory_size == 256 && aws_lambda_function.worker["reports"].reserved_concurrent_executions == -1
    )
    error_message = "the worker is another"
  }
  assert {
    condition = (
      aws_lambda_function.worker["reports"].filename == aws_lambda_function.this.filename && aws_lambda_function.worker["reports"].source_code_hash == aws_lambda_function.this.source_code_hash &&
      aws_lambda_function.worker["reports"].role == aws_lambda_function.this.role && aws_lambda_function.worker["reports"].layers == aws_lambda_function.this.layers &&
      aws_lambda_function.worker["reports"].logging_config[0].log_group == "/aws/lambda/dbjobs" && aws_lambda_function.worker["reports"].dead_letter_config[0].target_arn == aws_sqs_queue.dead_letters.arn
    )
    error_message = "the worker is another program than the ticks, or what it logs or fails at is elsewhere"
  }
  assert {
    condition = aws_lambda_function.worker["reports"].environment[0].variables == tomap({
      DBJOBS_NAME                = "dbjobs-reports"
      DBJOBS_MARGIN              = "3s"
      DBJOBS_METRICS             = "none"
      DBJOBS_CONCURRENCY         = "8"
      DBJOBS_DATABASE_SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
    })
    error_message = "the worker's variables are others"
  }
  assert {
    condition     = aws_lambda_function_event_invoke_config.worker["reports"].maximum_retry_attempts == 0 && aws_lambda_function_event_invoke_config.worker["reports"].function_name == "dbjobs-reports"
    error_message = "a start is tried again"
  }
  assert {
    condition     = output.worker_function_names == { reports = "dbjobs-reports" } && output.function_name == "dbjobs"
    error_message = "the outputs name other functions"
  }
}

run "trigger" {
  assert {
    condition     = aws_cloudwatch_event_rule.worker["reports"].schedule_expression == "rate(1 minute)" && aws_cloudwatch_event_rule.worker["reports"].state == "ENABLED" && aws_cloudwatch_event_rule.worker["reports"].name == "dbjobs-reports"
    error_message = "the worker is not started each minute"
  }
  assert {
    condition = (
      aws_cloudwatch_event_target.worker["reports"].rule == "dbjobs-reports" && aws_cloudwatch_event_target.worker["reports"].arn == "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs-reports" &&
      jsondecode(aws_cloudwatch_event_target.worker["reports"].input) == { command = "work", queue = "reports" } &&
      aws_cloudwatch_event_target.worker["reports"].retry_policy[0].maximum_retry_attempts == 0 && aws_cloudwatch_event_target.worker["reports"].dead_letter_config[0].arn == aws_sqs_queue.dead_letters.arn
    )
    error_message = "the rule starts something else, tries again, or forgets"
  }
  assert {
    condition = (
      aws_lambda_permission.worker["reports"].principal == "events.amazonaws.com" && aws_lambda_permission.worker["reports"].function_name == "dbjobs-reports" && aws_lambda_permission.worker["reports"].action == "lambda:InvokeFunction" &&
      aws_lambda_permission.worker["reports"].source_arn == "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-reports"
    )
    error_message = "not just this rule may start just this function"
  }
  assert {
    condition = jsondecode(aws_sqs_queue_policy.dead_letters[0].policy).Statement[0].Condition == { ArnEquals = { "aws:SourceArn" = [
      "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick", "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-reports",
    ] } }
    error_message = "others than these rules may fill the queue, or one of them may not"
  }
}

run "alarms" {
  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : contains([tomap({ name = "dbjobs" }), tomap({ FunctionName = "dbjobs" })], alarm.dimensions)]) && length(aws_cloudwatch_metric_alarm.this) == 9
    error_message = "a worker hides what the ticks do, or has alarms of its own"
  }
}

run "beside_scheduler" {
  variables {
    trigger = "scheduler"
    enabled = false
    workers = { reports = { timeout_seconds = 900, memory_mb = 1024, reserved_concurrency = 4, schedule_expression = "cron(0/5 8-18 ? * MON-FRI *)" } }
  }

  assert {
    condition = (
      aws_lambda_function.worker["reports"].timeout == 900 && aws_lambda_function.worker["reports"].memory_size == 1024 && aws_lambda_function.worker["reports"].reserved_concurrent_executions == 4 &&
      aws_cloudwatch_event_rule.worker["reports"].schedule_expression == "cron(0/5 8-18 ? * MON-FRI *)" && aws_cloudwatch_event_rule.worker["reports"].state == "DISABLED"
    )
    error_message = "the settings of a worker are not heeded"
  }
  assert {
    condition     = jsondecode(aws_sqs_queue_policy.dead_letters[0].policy).Statement[0].Condition == { ArnEquals = { "aws:SourceArn" = ["arn:aws:events:eu-central-1:111122223333:rule/dbjobs-reports"] } }
    error_message = "failed starts of the worker are not kept"
  }
}

run "in_a_vpc_and_woken" {
  variables {
    wake    = true
    workers = { reports = { schedule_expression = "rate(15 minutes)" } }
    vpc = {
      id                         = "vpc-0123456789abcdef0"
      subnet_ids                 = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
      database_security_group_id = "sg-0123456789abcdef0"
    }
  }

  assert {
    condition     = aws_lambda_function.worker["reports"].vpc_config[0].subnet_ids == aws_lambda_function.this.vpc_config[0].subnet_ids && aws_lambda_function.worker["reports"].vpc_config[0].security_group_ids == toset([output.security_group_id])
    error_message = "the worker is not in the VPC"
  }
  assert {
    condition = one([for s in jsondecode(aws_iam_role_policy.function.policy).Statement : s.Condition if s.Sid == "ButNotFromInside"]) == { ArnEquals = { "lambda:SourceFunctionArn" = [
      "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs", "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs-reports",
    ] } }
    error_message = "the code inside the worker may change the VPC's interfaces"
  }
  assert {
    condition     = aws_lambda_function.worker["reports"].environment[0].variables["DBJOBS_WAKE_TARGET"] == "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live"
    error_message = "after a run of the worker, no tick comes for what follows it"
  }
}
