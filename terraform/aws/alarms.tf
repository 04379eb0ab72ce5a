locals {
  # The longest time between two ticks: alarms that look at a shorter time would go on and off. The night after a range of
  # hours, and days, are a trigger that pauses.
  unit   = { minute = 1, hour = 60, day = 1440 }
  fields = regexall("[^ ()]+", local.schedule) # cron, minute, hour, ...
  ticks = [for i, most in [60, 24] : try([for n in sort(distinct(flatten([for part in split(",", local.fields[i + 1]) : [
    for p in [regex("^(?P<from>[*]|[0-9]+)(?:-(?P<to>[0-9]+))?(?:/(?P<step>[0-9]+))?$", part)] : [
      for n in range(p.from == "*" ? 0 : tonumber(p.from), 1 + tonumber(coalesce(p.to, p.from == "*" || p.step != null ? most - 1 : p.from)), tonumber(coalesce(p.step, "1"))) :
      format("%02d", n)
    ]
  ]]))) : tonumber(n)], range(most))] # of an hour, and of a day
  gaps     = [for i, most in [60, 24] : [for k, n in local.ticks[i] : try(local.ticks[i][k + 1], local.ticks[i][0] + most) - n]]
  in_hour  = slice(local.gaps[0], 0, length(local.gaps[0]) - 1)
  to_next  = local.gaps[0][length(local.gaps[0]) - 1]
  no_night = try(strcontains(local.fields[2], "-"), false)
  hours    = max(concat([1], local.no_night ? slice(local.gaps[1], 0, length(local.gaps[1]) - 1) : local.gaps[1])...)
  tick_minutes = try(
    local.fields[0] == "rate" ? tonumber(local.fields[1]) * local.unit[trimsuffix(local.fields[2], "s")] :
    max(concat(local.in_hour, [60 * (local.hours - 1) + local.to_next])...)
  , 1) # what is no expression, the input refuses

  # With wake, the ticks of the schedule are those of the safety trigger.
  no_tick_minutes = var.wake && var.no_tick_minutes > 0 ? max(var.no_tick_minutes, local.tick_minutes + 15) : var.no_tick_minutes

  # A metric that is not there means something different for each alarm. What is a state, and not an event, is missing
  # between two passes: there the alarm stays as it is. An event is in alarm for as long as one of the last minutes had it.
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
      description = "No pass of ${var.name} succeeded for ${local.no_tick_minutes} minutes."
      namespace   = var.metrics ? "dbjobs" : "AWS/Lambda"
      metric      = var.metrics ? "errors" : "Invocations" # errors is 0 where the pass succeeded, else 1
      dimensions  = var.metrics ? { name = var.name } : { FunctionName = aws_lambda_function.this.function_name }
      statistic   = var.metrics ? "Minimum" : "Sum"
      comparison  = var.metrics ? "GreaterThanThreshold" : "LessThanThreshold"
      threshold   = var.metrics ? 0 : 1
      minutes     = local.no_tick_minutes
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
      missing     = "ignore"
      enabled     = true
    }
    failing = {
      description = "The last run of a job of ${var.name} has failed: see dbjobs status, and dbjobs errors."
      namespace   = "dbjobs"
      metric      = "failing_jobs"
      dimensions  = { name = var.name }
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 1
      missing     = "ignore"
      enabled     = true
    }
    parked = {
      description = "A job of ${var.name} cannot be used as it is defined, so it does not run: see dbjobs status."
      namespace   = "dbjobs"
      metric      = "parked"
      dimensions  = { name = var.name }
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 1
      missing     = "ignore"
      enabled     = true
    }
    paused = {
      description = "A job of ${var.name} is paused, by hand or by its failures: see dbjobs pauses."
      namespace   = "dbjobs"
      metric      = "paused_jobs"
      dimensions  = { name = var.name }
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 1
      missing     = "ignore"
      enabled     = var.paused_alarm
    }
    queued = {
      description = "A queued run of ${var.name} has been ready for more than ${var.queued_minutes} minutes: see dbjobs run list --state queued."
      namespace   = "dbjobs"
      metric      = "queued_seconds"
      dimensions  = { name = var.name }
      statistic   = "Maximum"
      comparison  = "GreaterThanThreshold"
      threshold   = 60 * var.queued_minutes
      minutes     = 1
      missing     = "ignore"
      enabled     = true
    }
    lost = {
      description = "A run of ${var.name} never reported back within the last hour, and is not tried again: nobody knows whether it did its work."
      namespace   = "dbjobs"
      metric      = "lost"
      dimensions  = { name = var.name }
      statistic   = "Sum"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      minutes     = 60
      missing     = "notBreaching"
      enabled     = true
    }
  }

  own = toset([for name, alarm in local.alarms : name if alarm.namespace == "dbjobs" && name != "no-tick"])
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = { for name, alarm in local.alarms : name => alarm if(var.metrics || !contains(local.own, name)) && (name != "no-tick" || var.no_tick_minutes > 0) }

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
  datapoints_to_alarm = each.key == "lost" ? 1 : each.value.minutes
  treat_missing_data  = each.value.missing
  actions_enabled     = each.value.enabled
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags
}
