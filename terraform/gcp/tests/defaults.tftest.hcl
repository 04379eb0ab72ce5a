# What the module makes, told by the arguments and each right. No project is asked.

mock_provider "google" {
  override_resource {
    target = google_service_account.job
    values = { email = "dbjobs-job@acme-prod.iam.gserviceaccount.com" }
  }
  override_resource {
    target = google_service_account.scheduler
    values = { email = "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com" }
  }
}

variables {
  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_secret = "dbjobs-database-url"
  trigger         = "job"
}

run "job" {
  assert {
    condition = (
      google_cloud_run_v2_job.this.template[0].template[0].max_retries == 0 && google_cloud_run_v2_job.this.template[0].task_count == 1 && google_cloud_run_v2_job.this.template[0].parallelism == 1 &&
      google_cloud_run_v2_job.this.template[0].template[0].timeout == "300s" && google_cloud_run_v2_job.this.template[0].template[0].service_account == "dbjobs-job@acme-prod.iam.gserviceaccount.com"
    )
    error_message = "it runs twice, is tried again, or runs as somebody else"
  }
  assert {
    condition = (
      google_cloud_run_v2_job.this.template[0].template[0].containers[0].args == tolist(["tick"]) && google_cloud_run_v2_job.this.template[0].template[0].containers[0].image == var.image &&
      google_cloud_run_v2_job.this.template[0].template[0].containers[0].resources[0].limits == tomap({ cpu = "1", memory = "512Mi" })
    )
    error_message = "it runs something else"
  }
  assert {
    condition = { for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : e.name => e.value if length(e.value_source) == 0 } == {
      DBJOBS_NAME       = "dbjobs"
      DBJOBS_GRACE      = "3s"
      DBJOBS_BUDGET     = "290s"
      DBJOBS_STARTUP_ID = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
    }
    error_message = "the job's variables are others"
  }
  assert {
    condition = [for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : "${e.name}=${e.value_source[0].secret_key_ref[0].secret}@${e.value_source[0].secret_key_ref[0].version}" if length(e.value_source) > 0] == [
      "DBJOBS_DATABASE_URL=dbjobs-database-url@latest"
    ]
    error_message = "the URL does not come from the secret"
  }
  assert {
    condition     = length(google_cloud_run_v2_job.this.template[0].template[0].volumes) == 0 && length(google_cloud_run_v2_job.this.template[0].template[0].vpc_access) == 0 && length(google_project_iam_member.cloud_sql) == 0
    error_message = "there is a network or a volume that nobody asked for"
  }
}

run "a_grace_of_ones_own" {
  variables {
    environment = { DBJOBS_GRACE = "1s" }
  }
  assert {
    condition     = [for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : e.value if e.name == "DBJOBS_GRACE"] == ["1s"]
    error_message = "the grace is not the one of environment"
  }
}

run "trigger" {
  assert {
    condition = (
      google_cloud_scheduler_job.tick.http_target[0].uri == "https://run.googleapis.com/v2/projects/acme-prod/locations/europe-west3/jobs/dbjobs:run" && google_cloud_scheduler_job.tick.http_target[0].http_method == "POST" &&
      google_cloud_scheduler_job.tick.schedule == "* * * * *" && google_cloud_scheduler_job.tick.region == "europe-west3" && !google_cloud_scheduler_job.tick.paused && google_cloud_scheduler_job.tick.retry_config[0].retry_count == 0
    )
    error_message = "the trigger starts something else, at another time, or tries again"
  }
  assert {
    condition     = google_cloud_scheduler_job.tick.http_target[0].oauth_token[0].service_account_email == "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com" && length(google_cloud_scheduler_job.tick.http_target[0].oidc_token) == 0
    error_message = "the trigger is not the scheduler's account, by OAuth as Google's own APIs want it"
  }
}

run "wake" {
  variables {
    wake_queue        = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    wake_lead_seconds = 15
  }

  assert {
    condition = { for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : e.name => e.value if startswith(e.name, "DBJOBS_WAKE") } == {
      DBJOBS_WAKE        = "gcp-tasks:projects/acme-prod/locations/europe-west3/queues/dbjobs"
      DBJOBS_WAKE_LEAD   = "15s"
      DBJOBS_WAKE_NAME   = "dbjobs-wake"
      DBJOBS_WAKE_TARGET = "https://run.googleapis.com/v2/projects/acme-prod/locations/europe-west3/jobs/dbjobs:run"
      DBJOBS_WAKE_ROLE   = "dbjobs-scheduler@acme-prod.iam.gserviceaccount.com"
    }
    error_message = "the job's variables are others"
  }
  assert {
    condition     = google_cloud_scheduler_job.tick.schedule == "7 * * * *" && google_cloud_run_v2_job.this.template[0].template[0].max_retries == 2
    error_message = "there is no safety trigger, a tick a minute, or a pass that could not set an alarm is not tried again"
  }
  assert {
    condition = (
      google_service_account_iam_member.job[0].role == "roles/iam.serviceAccountUser" && google_service_account_iam_member.job[0].service_account_id == google_service_account.scheduler.name &&
      google_service_account_iam_member.job[0].member == "serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com"
    )
    error_message = "the job's account may not start the job as the scheduler's account, or as another one, too"
  }
}

run "without_wake" {
  assert {
    condition     = length(google_service_account_iam_member.job) == 0
    error_message = "there is a right that nobody asked for"
  }
}

run "rights" {
  assert {
    condition = (
      google_cloud_run_v2_job_iam_member.scheduler[0].role == "roles/run.invoker" && google_cloud_run_v2_job_iam_member.scheduler[0].name == "dbjobs" && google_cloud_run_v2_job_iam_member.scheduler[0].location == "europe-west3" &&
      google_cloud_run_v2_job_iam_member.scheduler[0].member == "serviceAccount:dbjobs-scheduler@acme-prod.iam.gserviceaccount.com"
    )
    error_message = "the scheduler's account may start more than this job, or not this job"
  }
  assert {
    condition = (
      google_secret_manager_secret_iam_member.job.role == "roles/secretmanager.secretAccessor" && google_secret_manager_secret_iam_member.job.secret_id == "dbjobs-database-url" &&
      google_secret_manager_secret_iam_member.job.member == "serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com"
    )
    error_message = "the job's account reads another secret, or not this one"
  }
  assert {
    condition     = google_service_account.job.account_id != google_service_account.scheduler.account_id
    error_message = "there is one account for both"
  }
}

# Jobs get secrets of Secret Manager as ${secret:NAME}, and not by Terraform's state.
run "secrets_of_jobs" {
  variables {
    secrets = { HOOK = "shop-hook", HOOK_OF_MAIL = "shop-hook", URL = "dbjobs-database-url" }
  }

  assert {
    condition = toset([for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : "${e.name}=${e.value_source[0].secret_key_ref[0].secret}@${e.value_source[0].secret_key_ref[0].version}" if length(e.value_source) > 0]) == toset([
      "DBJOBS_DATABASE_URL=dbjobs-database-url@latest", "DBJOBS_SECRET_HOOK=shop-hook@latest", "DBJOBS_SECRET_HOOK_OF_MAIL=shop-hook@latest", "DBJOBS_SECRET_URL=dbjobs-database-url@latest",
    ])
    error_message = "the job has other secrets"
  }
  assert {
    condition = { for name, m in google_secret_manager_secret_iam_member.secrets : name => "${m.secret_id} ${m.role} ${m.member}" } == {
      HOOK         = "shop-hook roles/secretmanager.secretAccessor serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com"
      HOOK_OF_MAIL = "shop-hook roles/secretmanager.secretAccessor serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com"
      URL          = "dbjobs-database-url roles/secretmanager.secretAccessor serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com"
    }
    error_message = "the job's account reads other secrets"
  }
}

# A secret that the same plan makes has an id that is not known before apply.
run "secrets_of_the_same_plan" {
  command = plan
  module {
    source = "./tests/same-plan"
  }
}

run "cloud_sql" {
  variables {
    cloud_sql_instances = ["acme-data:europe-west3:main"]
  }

  assert {
    condition = (
      tolist(google_cloud_run_v2_job.this.template[0].template[0].volumes[0].cloud_sql_instance[0].instances) == tolist(["acme-data:europe-west3:main"]) &&
      google_cloud_run_v2_job.this.template[0].template[0].containers[0].volume_mounts[0].mount_path == "/cloudsql" &&
      google_cloud_run_v2_job.this.template[0].template[0].containers[0].volume_mounts[0].name == google_cloud_run_v2_job.this.template[0].template[0].volumes[0].name
    )
    error_message = "the instance's socket is not there"
  }
  assert {
    condition = (
      google_project_iam_member.cloud_sql["acme-data:europe-west3:main"].project == "acme-data" && google_project_iam_member.cloud_sql["acme-data:europe-west3:main"].role == "roles/cloudsql.client" &&
      google_project_iam_member.cloud_sql["acme-data:europe-west3:main"].member == "serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com" &&
      google_project_iam_member.cloud_sql["acme-data:europe-west3:main"].condition[0].expression == "resource.service == \"sqladmin.googleapis.com\" && resource.name == \"projects/acme-data/instances/main\""
    )
    error_message = "the job's account may connect to more than this instance, or not to this one"
  }
}

run "manifests" {
  variables {
    manifests = ["gs://acme-config/jobs/", "gs://acme-config/night.yaml"]
  }

  assert {
    condition     = [for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : e.value if e.name == "DBJOBS_MANIFESTS"] == ["gs://acme-config/jobs/,gs://acme-config/night.yaml"]
    error_message = "the job may read something else than what is named"
  }
  assert {
    condition = { for url, m in google_storage_bucket_iam_member.manifests : url => "${m.bucket} ${m.role} ${m.member} ${m.condition[0].expression}" } == {
      "gs://acme-config/jobs/"      = "acme-config roles/storage.objectViewer serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com resource.name.startsWith(\"projects/_/buckets/acme-config/objects/jobs/\")"
      "gs://acme-config/night.yaml" = "acme-config roles/storage.objectViewer serviceAccount:dbjobs-job@acme-prod.iam.gserviceaccount.com resource.name == \"projects/_/buckets/acme-config/objects/night.yaml\""
    }
    error_message = "the account may read more of Cloud Storage than manifests, or not these"
  }
}

run "connector" {
  variables {
    vpc = { connector = "projects/acme-prod/locations/europe-west3/connectors/main" }
  }

  assert {
    condition     = google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].connector == "projects/acme-prod/locations/europe-west3/connectors/main" && google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].egress == "PRIVATE_RANGES_ONLY" && length(google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].network_interfaces) == 0
    error_message = "the connector is not used"
  }
}

run "subnetwork" {
  variables {
    vpc = { network = "main", subnetwork = "jobs" }
  }

  assert {
    condition     = google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].network_interfaces[0].network == "main" && google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].network_interfaces[0].subnetwork == "jobs" && google_cloud_run_v2_job.this.template[0].template[0].vpc_access[0].connector == null
    error_message = "the subnetwork is not used"
  }
}

run "alerts" {
  variables {
    notification_channels = ["projects/acme-prod/notificationChannels/17"]
    no_tick_minutes       = 7
    overdue_minutes       = 10
  }

  assert {
    condition     = alltrue([for p in concat([google_monitoring_alert_policy.failed, google_monitoring_alert_policy.no_tick[0]], values(google_monitoring_alert_policy.figure)) : p.notification_channels == tolist(["projects/acme-prod/notificationChannels/17"])])
    error_message = "an alert tells nobody"
  }
  assert {
    condition     = google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].duration == "420s" && strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "resource.labels.job_name = \"dbjobs\"") && strcontains(google_monitoring_alert_policy.no_tick[0].conditions[0].condition_absent[0].filter, "\"succeeded\"")
    error_message = "ticks may be missing unnoticed"
  }
  assert {
    condition     = google_monitoring_alert_policy.failed.conditions[0].condition_threshold[0].threshold_value == 0 && strcontains(google_monitoring_alert_policy.failed.conditions[0].condition_threshold[0].filter, "\"failed\"")
    error_message = "a failed pass goes unnoticed"
  }
  assert {
    condition     = endswith(google_monitoring_alert_policy.figure["overdue"].conditions[0].condition_matched_log[0].filter, "jsonPayload.late_seconds > 600") && length(google_monitoring_alert_policy.figure["overdue"].alert_strategy[0].notification_rate_limit) == 1
    error_message = "what is overdue goes unnoticed"
  }
  assert {
    condition     = toset(keys(output.alert_policy_names)) == toset(["failed", "no_tick", "overdue", "failing", "parked", "queued", "lost"])
    error_message = "an alert is missing"
  }
}

run "off" {
  variables {
    enabled     = false
    enable_apis = false
  }

  assert {
    condition     = google_cloud_scheduler_job.tick.paused && length(google_monitoring_alert_policy.no_tick) == 0 && length(google_project_service.this) == 0
    error_message = "it still ticks, alerts that it does not, or enables APIs"
  }
}

run "off_with_alarms" {
  variables {
    enabled    = false
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
  }

  assert {
    condition     = google_cloud_scheduler_job.tick.paused && length(google_cloud_run_v2_job_iam_member.scheduler) == 0
    error_message = "an alarm that a pass has set still starts a tick"
  }
}

run "apis" {
  assert {
    condition = toset(keys(google_project_service.this)) == toset([
      "cloudscheduler.googleapis.com", "iam.googleapis.com", "monitoring.googleapis.com", "run.googleapis.com", "secretmanager.googleapis.com",
    ]) && alltrue([for s in google_project_service.this : !s.disable_on_destroy])
    error_message = "an API is missing, or is taken from others"
  }
}

run "apis_of_cloud_sql" {
  variables {
    cloud_sql_instances = ["acme-prod:europe-west3:main"]
  }

  assert {
    condition     = contains(keys(google_project_service.this), "sqladmin.googleapis.com") && contains(keys(google_project_service.this), "cloudresourcemanager.googleapis.com")
    error_message = "the connection to Cloud SQL lacks an API"
  }
}

# A text that looks as if it had a secret, and has none.
run "environment" {
  variables {
    environment = {
      OTHER = jsonencode({ heartbeat = "https://hc-ping.com/0a1b2c3d", mail = { from = "jobs@example.org" } })

      DBJOBS_CONFIG = <<-EOT
        heartbeat: https://hc-ping.com/0a1b2c3d
        mail: {server: smtp.example.org, from: jobs@example.org}
      EOT
    }
  }
  assert {
    condition     = anytrue([for e in google_cloud_run_v2_job.this.template[0].template[0].containers[0].env : e.name == "DBJOBS_CONFIG" && strcontains(coalesce(e.value, "none"), "jobs@example.org")])
    error_message = "the job does not get its variables"
  }
}
