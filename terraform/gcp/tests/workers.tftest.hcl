# Services for queues that ticks leave to workers.

mock_provider "google" {
  override_resource {
    target = google_service_account.job
    values = { email = "dbjobs-job@acme-prod.iam.gserviceaccount.com" }
  }
  override_resource {
    target = google_service_account.scheduler
    values = { email = "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com" }
  }
  override_resource {
    target = google_cloud_run_v2_service.this
    values = { uri = "https://dbjobs-x7k.a.run.app" }
  }
}

variables {
  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_secret = "dbjobs-database-url"
  workers         = { reports = {} }
}

run "worker" {
  assert {
    condition = (
      toset(keys(google_cloud_run_v2_service.this)) == toset(["tick", "work/reports"]) && google_cloud_run_v2_service.this["work/reports"].name == "dbjobs-reports" && google_cloud_run_v2_service.this["tick"].name == "dbjobs" &&
      google_cloud_run_v2_service.this["work/reports"].template[0].timeout == "900s" && google_cloud_run_v2_service.this["tick"].template[0].timeout == "300s" &&
      google_cloud_run_v2_service.this["work/reports"].template[0].containers[0].resources[0].limits == tomap({ cpu = "1", memory = "512Mi" }) &&
      google_cloud_run_v2_service.this["work/reports"].template[0].service_account == "dbjobs-job@acme-prod.iam.gserviceaccount.com" && google_cloud_run_v2_service.this["work/reports"].ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY"
    )
    error_message = "the worker is another, or changes the ticks"
  }
  assert {
    condition = { for e in google_cloud_run_v2_service.this["work/reports"].template[0].containers[0].env : e.name => e.value if length(e.value_source) == 0 } == {
      DBJOBS_NAME            = "dbjobs-reports"
      DBJOBS_GRACE           = "3s"
      DBJOBS_BUDGET          = "890s"
      DBJOBS_STARTUP_ID      = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
      DBJOBS_REQUEST_TIMEOUT = "899s"
      DBJOBS_OIDC_AUDIENCE   = "dbjobs:acme-prod/europe-west3/dbjobs-reports"
      DBJOBS_OIDC_CALLER     = "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com"
    }
    error_message = "the worker's variables are others"
  }
  assert {
    condition     = output.worker_service_uris == { reports = "https://dbjobs-x7k.a.run.app" } && output.service_uri == "https://dbjobs-x7k.a.run.app"
    error_message = "the outputs name other services"
  }
}

run "trigger" {
  assert {
    condition = (
      google_cloud_scheduler_job.worker["reports"].name == "dbjobs-reports" && google_cloud_scheduler_job.worker["reports"].schedule == "* * * * *" && google_cloud_scheduler_job.worker["reports"].attempt_deadline == "900s" &&
      google_cloud_scheduler_job.worker["reports"].http_target[0].uri == "https://dbjobs-x7k.a.run.app/work?queue=reports" && google_cloud_scheduler_job.worker["reports"].http_target[0].http_method == "POST" &&
      google_cloud_scheduler_job.worker["reports"].retry_config[0].retry_count == 0 && !google_cloud_scheduler_job.worker["reports"].paused
    )
    error_message = "the worker is started otherwise"
  }
  assert {
    condition = (
      google_cloud_scheduler_job.worker["reports"].http_target[0].oidc_token[0].audience == "dbjobs:acme-prod/europe-west3/dbjobs-reports" &&
      google_cloud_scheduler_job.worker["reports"].http_target[0].oidc_token[0].service_account_email == "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com"
    )
    error_message = "the trigger shows somebody else, or to another service"
  }
}

run "alerts" {
  assert {
    condition     = !strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "reports") && strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "resource.labels.service_name = \"dbjobs\"")
    error_message = "a worker hides that ticks are missing"
  }
}

run "beside_the_job" {
  variables {
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    workers    = { reports = { timeout_seconds = 1800, cpu = 2, memory_mb = 2048, schedule = "*/15 * * * *" } }
    enabled    = false
  }

  assert {
    condition = (
      toset(keys(google_cloud_run_v2_service.this)) == toset(["work/reports"]) && google_cloud_run_v2_service.this["work/reports"].template[0].containers[0].resources[0].limits == tomap({ cpu = "2", memory = "2048Mi" }) &&
      google_cloud_scheduler_job.worker["reports"].schedule == "*/15 * * * *" && google_cloud_scheduler_job.worker["reports"].paused && google_cloud_scheduler_job.worker["reports"].attempt_deadline == "1800s"
    )
    error_message = "the settings of a worker are not heeded"
  }
  assert {
    condition     = output.service_uri == null && google_cloud_scheduler_job.tick.http_target[0].uri == "https://run.googleapis.com/v2/projects/acme-prod/locations/europe-west3/jobs/dbjobs:run"
    error_message = "ticks are started otherwise"
  }
}
