locals {
  # With wake_queue, the ticks of the schedule are those of the safety trigger.
  no_tick_minutes = local.wake && var.no_tick_minutes > 0 ? max(var.no_tick_minutes, local.tick_minutes + 15) : var.no_tick_minutes

  this = join(" AND ", [
    local.is_service ? "resource.type = \"cloud_run_revision\"" : "resource.type = \"cloud_run_job\"",
    local.is_service ? "resource.labels.service_name = \"${var.name}\"" : "resource.labels.job_name = \"${var.name}\"",
    "resource.labels.location = \"${var.region}\"",
  ])

  # How Cloud Run counts passes. A request that gets 429, since another pass took its time, is neither.
  succeeded = local.is_service ? (
    "metric.type = \"run.googleapis.com/request_count\" AND metric.labels.response_code_class = \"2xx\""
  ) : "metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.labels.result = \"succeeded\""
  failed = local.is_service ? (
    "metric.type = \"run.googleapis.com/request_count\" AND metric.labels.response_code_class = \"5xx\""
  ) : "metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.labels.result = \"failed\""
}

resource "google_monitoring_alert_policy" "failed" {
  project               = var.project
  display_name          = "${var.name}: a pass failed"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "a pass failed"
    condition_threshold {
      filter          = "${local.this} AND ${local.failed}"
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"
      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_DELTA"
      }
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  depends_on = [google_project_service.this]
}

# It needs one pass that succeeded, and notices from then on that others do not follow.
resource "google_monitoring_alert_policy" "no_tick" {
  count = var.enabled && var.no_tick_minutes > 0 ? 1 : 0

  project               = var.project
  display_name          = "${var.name}: no tick for ${local.no_tick_minutes} minutes"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "no pass succeeded"
    condition_absent {
      filter   = "${local.this} AND ${local.succeeded}"
      duration = "${60 * local.no_tick_minutes}s"
      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM" # of all revisions: one that another has replaced is silent for ever
      }
    }
  }

  depends_on = [google_project_service.this]
}

# By the line that each pass logs, so that no metric of one's own has to be there first. An incident stays open while such
# lines come, and tells once an hour that it does.
locals {
  figures = {
    overdue = { over = 60 * var.overdue_minutes, figure = "late_seconds", title = "something is overdue for more than ${var.overdue_minutes} minutes" }
    failing = { over = 0, figure = "failing_jobs", title = "the last run of a job has failed" }
    parked  = { over = 0, figure = "parked", title = "a job cannot be used as it is defined" }
    queued  = { over = 60 * var.queued_minutes, figure = "queued_seconds", title = "a queued run has been ready for more than ${var.queued_minutes} minutes" }
    lost    = { over = 0, figure = "lost", title = "a run never reported back" }
    paused  = { over = 0, figure = "paused_jobs", title = "a job is paused" }
  }
}

resource "google_monitoring_alert_policy" "figure" {
  for_each = { for name, f in local.figures : name => f if name != "paused" || var.paused_alert }

  project               = var.project
  display_name          = "${var.name}: ${each.value.title}"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.title
    condition_matched_log {
      filter = "${local.this} AND jsonPayload.${each.value.figure} > ${each.value.over}"
    }
  }

  alert_strategy {
    auto_close = "${60 * max(30, 2 * local.tick_minutes)}s"
    notification_rate_limit {
      period = "3600s"
    }
  }

  depends_on = [google_project_service.this]
}

locals {
  # The longest time between two ticks: alerts that look at a shorter time would come and go. The night after a range of
  # hours, and days, are a trigger that pauses.
  fields = regexall("[^ ]+", local.schedule) # minute, hour, ...
  ticks = [for i, most in [60, 24] : try([for n in sort(distinct(flatten([for part in split(",", local.fields[i]) : [
    for p in [regex("^(?P<from>[*]|[0-9]+)(?:-(?P<to>[0-9]+))?(?:/(?P<step>[0-9]+))?$", part)] : [
      for n in range(p.from == "*" ? 0 : tonumber(p.from), 1 + tonumber(coalesce(p.to, p.from == "*" || p.step != null ? most - 1 : p.from)), tonumber(coalesce(p.step, "1"))) :
      format("%02d", n)
    ]
  ]]))) : tonumber(n)], range(most))] # of an hour, and of a day
  gaps         = [for i, most in [60, 24] : [for k, n in local.ticks[i] : try(local.ticks[i][k + 1], local.ticks[i][0] + most) - n]]
  in_hour      = slice(local.gaps[0], 0, length(local.gaps[0]) - 1)
  to_next      = local.gaps[0][length(local.gaps[0]) - 1]
  no_night     = try(strcontains(local.fields[1], "-"), false)
  hours        = max(concat([1], local.no_night ? slice(local.gaps[1], 0, length(local.gaps[1]) - 1) : local.gaps[1])...)
  tick_minutes = max(concat(local.in_hour, [60 * (local.hours - 1) + local.to_next])...)

  # The longest time between two passes that have succeeded. A service answers when its pass ends; executions of a job overlap.
  success_minutes = local.tick_minutes + (local.is_service ? ceil(var.timeout_seconds / 60) : 0)
}
