locals {
  this_job = "resource.type = \"cloud_run_job\" AND resource.labels.job_name = \"${var.name}\" AND resource.labels.location = \"${var.region}\""
}

resource "google_monitoring_alert_policy" "failed" {
  project               = var.project
  display_name          = "${var.name}: a pass failed"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "an execution failed"
    condition_threshold {
      filter          = "${local.this_job} AND metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.labels.result = \"failed\""
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
  count = var.enabled ? 1 : 0

  project               = var.project
  display_name          = "${var.name}: no tick for ${var.no_tick_minutes} minutes"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "no execution succeeded"
    condition_absent {
      filter   = "${local.this_job} AND metric.type = \"run.googleapis.com/job/completed_execution_count\" AND metric.labels.result = \"succeeded\""
      duration = "${60 * var.no_tick_minutes}s"
      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_DELTA"
      }
    }
  }

  depends_on = [google_project_service.this]
}

# By the line that each pass logs, so that no metric of one's own has to be there first.
resource "google_monitoring_alert_policy" "overdue" {
  project               = var.project
  display_name          = "${var.name}: something is overdue for more than ${var.overdue_minutes} minutes"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "overdue when a pass began"
    condition_matched_log {
      filter = "${local.this_job} AND jsonPayload.late_seconds > ${60 * var.overdue_minutes}"
    }
  }

  alert_strategy {
    auto_close = "1800s"
    notification_rate_limit {
      period = "3600s"
    }
  }

  depends_on = [google_project_service.this]
}
