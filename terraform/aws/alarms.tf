locals {
  # A metric that is not there means something different for each alarm.
  alarms = {
    errors = {
      description = "A pass of ${var.name} failed: see the log group ${aws_cloudwatch_log_group.this.name}."
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = aws_lambda_function.this.function_name }
      statistic   = "Sum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 1
      missing     = "notBreaching"
      enabled     = true
    }
    throttles = {
      description = "Starts of ${var.name} were put off: passes take so long that they reach reserved_concurrency, or the account's quota is used up."
      namespace   = "AWS/Lambda"
      metric      = "Throttles"
      dimensions  = { FunctionName = aws_lambda_function.this.function_name }
      statistic   = "Sum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 1
      missing     = "notBreaching"
      enabled     = true
    }
    no-tick = {
      description = "No pass of ${var.name} succeeded for ${var.no_tick_minutes} minutes."
      namespace   = var.metrics ? "dbjobs" : "AWS/Lambda"
      metric      = var.metrics ? "errors" : "Invocations" # errors is 0 where the pass succeeded, else 1
      dimensions  = var.metrics ? { name = var.name } : { FunctionName = aws_lambda_function.this.function_name }
      statistic   = var.metrics ? "Minimum" : "Sum"
      comparison  = var.metrics ? "GreaterThanThreshold" : "LessThanThreshold"
      threshold   = var.metrics ? 0 : 1
      minutes     = var.no_tick_minutes
      missing     = "breaching" # no pass, no metric
      enabled     = var.enabled
    }
    overdue = {
      description = "When a pass of ${var.name} began, something had been due for more than ${var.overdue_minutes} minutes: ticks are missing, passes are cut short, or a plan stays locked."
      namespace   = "dbjobs"
      metric      = "late_seconds"
      dimensions  = { name = var.name }
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 60 * var.overdue_minutes
      minutes     = 1
      missing     = "notBreaching"
      enabled     = true
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = { for name, alarm in local.alarms : name => alarm if var.metrics || name != "overdue" }

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  period              = 60
  evaluation_periods  = each.value.minutes
  datapoints_to_alarm = each.value.minutes
  treat_missing_data  = each.value.missing
  actions_enabled     = each.value.enabled
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags
}
