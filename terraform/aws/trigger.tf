# What starts a tick: an EventBridge rule, or EventBridge Scheduler. Neither tries again: the next minute does. With wake,
# passes set alarms of EventBridge Scheduler themselves, and what is here is the safety trigger.

locals {
  by_rule      = var.trigger == "rule"
  by_scheduler = var.trigger == "scheduler"
  schedule     = coalesce(var.schedule_expression, var.wake ? "rate(1 hour)" : "rate(1 minute)")
}

resource "aws_cloudwatch_event_rule" "tick" {
  count = local.by_rule ? 1 : 0

  name                = "${var.name}-tick"
  description         = "Starts a tick of ${var.name}"
  schedule_expression = local.schedule
  state               = var.enabled ? "ENABLED" : "DISABLED"
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "tick" {
  count = local.by_rule ? 1 : 0

  rule      = aws_cloudwatch_event_rule.tick[0].name
  target_id = "tick"
  arn       = aws_lambda_alias.live.arn
  input     = jsonencode({ command = "tick" })

  retry_policy {
    maximum_retry_attempts       = 0
    maximum_event_age_in_seconds = 60
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }

  # A rule that fires before it may invoke is a failed start.
  depends_on = [aws_lambda_permission.rule, aws_sqs_queue_policy.dead_letters]
}

resource "aws_lambda_permission" "rule" {
  count = local.by_rule ? 1 : 0

  statement_id  = "tick"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this.function_name
  qualifier     = aws_lambda_alias.live.name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.tick[0].arn
}

resource "aws_sqs_queue_policy" "dead_letters" {
  count = local.by_rule || length(var.workers) > 0 ? 1 : 0

  queue_url = aws_sqs_queue.dead_letters.url

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "KeepWhatTheRulesCouldNotStart"
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.dead_letters.arn
      Principal = { Service = "events.amazonaws.com" }
      Condition = { ArnEquals = { "aws:SourceArn" = concat(aws_cloudwatch_event_rule.tick[*].arn, [for rule in aws_cloudwatch_event_rule.worker : rule.arn]) } }
    }]
  })
}

resource "aws_scheduler_schedule" "tick" {
  count = local.by_scheduler ? 1 : 0

  name                         = "${var.name}-tick"
  description                  = "Starts a tick of ${var.name}"
  schedule_expression          = local.schedule
  schedule_expression_timezone = "UTC"
  state                        = var.enabled ? "ENABLED" : "DISABLED"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live.arn
    role_arn = aws_iam_role.scheduler[0].arn
    input    = jsonencode({ command = "tick" })

    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }

    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }

  depends_on = [aws_iam_role_policy.scheduler]
}

resource "aws_iam_role" "scheduler" {
  count = local.by_scheduler || var.wake ? 1 : 0

  name        = "${var.name}-scheduler"
  description = "Starts the function ${var.name}, and nothing else"
  tags        = var.tags

  permissions_boundary = var.permissions_boundary_arn

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      # Scheduler names the group of the schedule here, not the schedule.
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = "arn:${local.partition}:scheduler:${local.region}:${local.account}:schedule-group/default"
        }
      }
    }]
  })
}

# Where the trigger is off, the alarms that are set start nothing, either: each of their passes would set the next one.
resource "aws_iam_role_policy" "scheduler" {
  count = var.enabled && (local.by_scheduler || var.wake) ? 1 : 0

  name = "scheduler"
  role = aws_iam_role.scheduler[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "StartTheFunction"
        Effect   = "Allow"
        Action   = ["lambda:InvokeFunction"]
        Resource = aws_lambda_alias.live.arn
      },
      {
        Sid      = "KeepWhatCouldNotBeStarted"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = aws_sqs_queue.dead_letters.arn
      },
    ]
  })
}
