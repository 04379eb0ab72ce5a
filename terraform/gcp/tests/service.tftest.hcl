# What Cloud Scheduler starts by default: a service, by the request.

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
}

run "service" {
  assert {
    condition = (
      google_cloud_run_v2_service.this["tick"].template[0].containers[0].args == tolist(["serve"]) && google_cloud_run_v2_service.this["tick"].template[0].containers[0].image == var.image &&
      google_cloud_run_v2_service.this["tick"].template[0].service_account == "dbjobs-job@acme-prod.iam.gserviceaccount.com" && google_cloud_run_v2_service.this["tick"].template[0].timeout == "300s"
    )
    error_message = "it runs something else, or as somebody else"
  }
  assert {
    condition = (
      google_cloud_run_v2_service.this["tick"].template[0].scaling[0].max_instance_count == 1 && google_cloud_run_v2_service.this["tick"].template[0].scaling[0].min_instance_count == 0 &&
      google_cloud_run_v2_service.this["tick"].template[0].containers[0].resources[0].cpu_idle
    )
    error_message = "it is billed between two passes, or several run side by side"
  }
  assert {
    condition = { for e in google_cloud_run_v2_service.this["tick"].template[0].containers[0].env : e.name => e.value if length(e.value_source) == 0 } == {
      DBJOBS_NAME            = "dbjobs"
      DBJOBS_GRACE           = "3s"
      DBJOBS_BUDGET          = "290s"
      DBJOBS_STARTUP_ID      = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
      DBJOBS_REQUEST_TIMEOUT = "299s"
      DBJOBS_OIDC_AUDIENCE   = "dbjobs:acme-prod/europe-west3/dbjobs"
      DBJOBS_OIDC_CALLER     = "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com"
    }
    error_message = "the service's variables are others"
  }
}

run "trigger" {
  assert {
    condition = (
      google_cloud_scheduler_job.tick.http_target[0].uri == "https://dbjobs-x7k.a.run.app/tick" && google_cloud_scheduler_job.tick.http_target[0].http_method == "POST" &&
      google_cloud_scheduler_job.tick.attempt_deadline == "300s" && google_cloud_scheduler_job.tick.retry_config[0].retry_count == 0
    )
    error_message = "the trigger calls something else, tries again, or does not wait for the pass"
  }
  assert {
    condition = (
      google_cloud_scheduler_job.tick.http_target[0].oidc_token[0].service_account_email == "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com" &&
      google_cloud_scheduler_job.tick.http_target[0].oidc_token[0].audience == "dbjobs:acme-prod/europe-west3/dbjobs" && length(google_cloud_scheduler_job.tick.http_target[0].oauth_token) == 0
    )
    error_message = "the trigger does not show who it is, as a service wants it"
  }
  assert {
    condition     = google_cloud_run_v2_service.this["tick"].ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" && length(google_cloud_run_v2_job_iam_member.scheduler) == 0
    error_message = "the internet reaches the service, or the scheduler's account may start the job as well"
  }
}

run "alerts" {
  assert {
    condition = (
      strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "resource.labels.service_name = \"dbjobs\"") &&
      strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "response_code_class = \"2xx\"") &&
      google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].aggregations[0].cross_series_reducer == "REDUCE_SUM" &&
      strcontains(google_monitoring_alert_policy.failed.conditions[0].condition_threshold[0].filter, "response_code_class = \"5xx\"") &&
      startswith(google_monitoring_alert_policy.figure["failing"].conditions[0].condition_matched_log[0].filter, "resource.type = \"cloud_run_revision\"")
    )
    error_message = "the alerts watch something else"
  }
}

run "network" {
  variables {
    vpc                 = { network = "main", subnetwork = "jobs" }
    cloud_sql_instances = ["acme-data:europe-west3:main"]
  }

  assert {
    condition = (
      google_cloud_run_v2_service.this["tick"].template[0].vpc_access[0].network_interfaces[0].subnetwork == "jobs" &&
      google_cloud_run_v2_service.this["tick"].template[0].containers[0].volume_mounts[0].name == google_cloud_run_v2_service.this["tick"].template[0].volumes[0].name
    )
    error_message = "the database is not reached"
  }
}

run "secrets_of_jobs" {
  variables {
    secrets = { HOOK = "shop-hook" }
    workers = { reports = {} }
  }

  assert {
    condition = alltrue([for service in google_cloud_run_v2_service.this :
      toset([for e in service.template[0].containers[0].env : "${e.name}=${e.value_source[0].secret_key_ref[0].secret}" if length(e.value_source) > 0]) == toset(["DBJOBS_DATABASE_URL=dbjobs-database-url", "DBJOBS_SECRET_HOOK=shop-hook"])
    ])
    error_message = "a service has other secrets"
  }
}

run "passes_of_half_an_hour" {
  variables {
    timeout_seconds = 1800
    no_tick_minutes = 32
  }

  assert {
    condition     = google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].duration == "1920s"
    error_message = "the alert for missing ticks waits for another time"
  }
  assert {
    condition     = google_cloud_run_v2_service.this["tick"].template[0].max_instance_request_concurrency == 31
    error_message = "no instance takes the requests that come while a pass runs"
  }
}

run "a_pass_of_an_hour" {
  command = plan
  variables {
    timeout_seconds = 3600
  }
  expect_failures = [var.timeout_seconds]
}
