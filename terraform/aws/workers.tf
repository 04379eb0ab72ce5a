# Functions for the queues that ticks leave to workers, each with a rule of its own. A pass of a worker may take as long as Lambda
# lets it, and the ticks go on beside it, in a function with its own limits and alarms. All else is shared: the zip file, the
# secret, the rights, the log group, the queue of failed starts.

resource "aws_lambda_function" "worker" {
  for_each = var.workers

  function_name    = "${var.name}-${each.key}"
  description      = "One pass of a worker of the queue ${each.key}"
  role             = aws_iam_role.function.arn
  package_type     = "Zip"
  filename         = local.zip
  source_code_hash = fileexists(local.zip) ? filebase64sha256(local.zip) : null
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  layers           = var.secrets_extension_layer_arn == null ? null : [var.secrets_extension_layer_arn]
  timeout          = each.value.timeout_seconds
  memory_size      = each.value.memory_mb

  reserved_concurrent_executions = each.value.reserved_concurrency

  environment {
    # No figures of a worker are billed, since those of ticks show all queues. Its callers may ask for passes only.
    variables = merge(
      { for name, value in local.environment : name => value if !contains(["DBJOBS_LAMBDA_ALLOW", "DBJOBS_MANIFESTS"], name) },
      { DBJOBS_NAME = "${var.name}-${each.key}", DBJOBS_METRICS = "none" },
    )
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.dead_letters.arn
  }

  logging_config {
    log_format = "Text"
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

  depends_on = [aws_iam_role_policy.function]
}

# The next start is the retry.
resource "aws_lambda_function_event_invoke_config" "worker" {
  for_each = var.workers

  function_name                = aws_lambda_function.worker[each.key].function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
}

resource "aws_cloudwatch_event_rule" "worker" {
  for_each = var.workers

  name                = "${var.name}-${each.key}"
  description         = "Starts a worker of the queue ${each.key}"
  schedule_expression = coalesce(each.value.schedule_expression, "rate(1 minute)")
  state               = var.enabled ? "ENABLED" : "DISABLED"
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "worker" {
  for_each = var.workers

  rule      = aws_cloudwatch_event_rule.worker[each.key].name
  target_id = "work"
  arn       = aws_lambda_function.worker[each.key].arn
  input     = jsonencode({ command = "work", queue = each.key })

  retry_policy {
    maximum_retry_attempts       = 0
    maximum_event_age_in_seconds = 60
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }

  depends_on = [aws_lambda_permission.worker, aws_sqs_queue_policy.dead_letters]
}

resource "aws_lambda_permission" "worker" {
  for_each = var.workers

  statement_id  = "work"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.worker[each.key].function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.worker[each.key].arn
}
