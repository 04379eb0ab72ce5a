# What runs the passes of dbjobs, and the Cloud Scheduler job that starts them, each as an account of its own with the rights
# for that and no others. A service is billed for the time of each request, a job for a minute at least. The job is there in
# any case: its arguments are any command line, such as migrate, and where nobody starts it, it costs nothing.

locals {
  # The container is killed at the timeout; by then the pass has ended by itself.
  margin_seconds = 10

  # Cloud Run kills 10 s after SIGTERM: runs get the first seconds to end, and programs the rest.
  environment = merge({ DBJOBS_GRACE = "3s" }, var.environment, {
    DBJOBS_NAME       = var.name
    DBJOBS_BUDGET     = "${var.timeout_seconds - local.margin_seconds}s"
    DBJOBS_STARTUP_ID = var.image
    }, length(var.manifests) == 0 ? {} : {
    DBJOBS_MANIFESTS = join(",", var.manifests)
    }, !local.wake ? {} : {
    DBJOBS_WAKE        = "gcp-tasks:${var.wake_queue}"
    DBJOBS_WAKE_LEAD   = "${var.wake_lead_seconds}s"
    DBJOBS_WAKE_NAME   = "${var.name}-wake"
    DBJOBS_WAKE_TARGET = local.start
    DBJOBS_WAKE_ROLE   = google_service_account.scheduler.email
  })

  wake     = var.wake_queue != null
  schedule = coalesce(var.schedule, local.wake ? "7 * * * *" : "* * * * *")
  start    = "https://run.googleapis.com/v2/projects/${var.project}/locations/${var.region}/jobs/${var.name}:run"

  is_service = coalesce(var.trigger, local.wake ? "job" : "service") == "service"

  # The ticks' service, if it is one, and one for each queue of workers: so each has its own timeout, and alerts look at ticks only.
  # Of the tokens that the scheduler shows, a service takes those with its audience.
  workers = { for queue, worker in var.workers : "work/${queue}" => merge(worker, { name = "${var.name}-${queue}", queue = queue }) }
  services = { for key, service in merge(
    local.is_service ? { tick = { name = var.name, queue = null, timeout_seconds = var.timeout_seconds, cpu = var.cpu, memory_mb = var.memory_mb, schedule = null } } : {},
    local.workers,
  ) : key => merge(service, { audience = "dbjobs:${var.project}/${var.region}/${service.name}" }) }
}

locals {
  apis = concat(
    ["cloudscheduler.googleapis.com", "iam.googleapis.com", "monitoring.googleapis.com", "run.googleapis.com", "secretmanager.googleapis.com"],
    local.wake ? ["cloudtasks.googleapis.com"] : [],
    # To connect to an instance, and to give the right to.
    length(var.cloud_sql_instances) == 0 ? [] : ["cloudresourcemanager.googleapis.com", "sqladmin.googleapis.com"],
  )
}

resource "google_project_service" "this" {
  for_each = toset(var.enable_apis ? local.apis : [])

  project            = var.project
  service            = each.value
  disable_on_destroy = false # others may need it
}

resource "google_cloud_run_v2_job" "this" {
  project             = var.project
  location            = var.region
  name                = var.name
  labels              = var.labels
  deletion_protection = false # it keeps nothing: all is in the database

  template {
    task_count  = 1
    parallelism = 1
    labels      = var.labels

    template {
      service_account = google_service_account.job.email
      timeout         = "${var.timeout_seconds}s"
      max_retries     = local.wake ? 2 : 0 # without alarms, the next minute is the retry

      containers {
        image = var.image
        args  = ["tick"]

        resources {
          limits = {
            cpu    = tostring(var.cpu)
            memory = "${var.memory_mb}Mi"
          }
        }

        env {
          name = "DBJOBS_DATABASE_URL"
          value_source {
            secret_key_ref {
              secret  = var.database_secret
              version = var.database_secret_version
            }
          }
        }

        dynamic "env" {
          for_each = var.secrets
          content {
            name = "DBJOBS_SECRET_${env.key}"
            value_source {
              secret_key_ref {
                secret  = env.value
                version = "latest"
              }
            }
          }
        }

        dynamic "env" {
          for_each = local.environment
          content {
            name  = env.key
            value = env.value
          }
        }

        dynamic "volume_mounts" {
          for_each = length(var.cloud_sql_instances) == 0 ? [] : ["cloudsql"]
          content {
            name       = volume_mounts.value
            mount_path = "/cloudsql"
          }
        }
      }

      dynamic "volumes" {
        for_each = length(var.cloud_sql_instances) == 0 ? [] : ["cloudsql"]
        content {
          name = volumes.value
          cloud_sql_instance {
            instances = var.cloud_sql_instances
          }
        }
      }

      dynamic "vpc_access" {
        for_each = var.vpc == null ? [] : [var.vpc]
        content {
          connector = vpc_access.value.connector
          egress    = "PRIVATE_RANGES_ONLY"

          dynamic "network_interfaces" {
            for_each = vpc_access.value.subnetwork == null ? [] : [vpc_access.value]
            content {
              network    = network_interfaces.value.network
              subnetwork = network_interfaces.value.subnetwork
            }
          }
        }
      }
    }
  }

  # Cloud Run tries to read the secrets when the job is made.
  depends_on = [google_project_service.this, google_secret_manager_secret_iam_member.job, google_secret_manager_secret_iam_member.secrets]
}

resource "google_cloud_run_v2_service" "this" {
  for_each = local.services

  project             = var.project
  location            = var.region
  name                = each.value.name
  labels              = var.labels
  deletion_protection = false

  # Nobody from the internet comes through, but Cloud Scheduler of the same project does. The program itself checks that it is
  # that account, by the token that Google signs, so there is no second list of callers to keep.
  ingress              = "INGRESS_TRAFFIC_INTERNAL_ONLY"
  invoker_iam_disabled = true

  template {
    labels                           = var.labels
    service_account                  = google_service_account.job.email
    timeout                          = "${each.value.timeout_seconds}s"
    max_instance_request_concurrency = max(10, ceil(each.value.timeout_seconds / 60) + 1) # requests that come while a pass runs, one a minute, share the next one

    # Passes of two instances would do no harm, and no good either. None is kept: between two passes nothing is billed.
    scaling {
      min_instance_count = 0
      max_instance_count = 1
    }

    containers {
      image = var.image
      args  = ["serve"]

      resources {
        cpu_idle = true # billed while there is a request
        limits = {
          cpu    = tostring(each.value.cpu)
          memory = "${each.value.memory_mb}Mi"
        }
      }

      env {
        name = "DBJOBS_DATABASE_URL"
        value_source {
          secret_key_ref {
            secret  = var.database_secret
            version = var.database_secret_version
          }
        }
      }

      dynamic "env" {
        for_each = var.secrets
        content {
          name = "DBJOBS_SECRET_${env.key}"
          value_source {
            secret_key_ref {
              secret  = env.value
              version = "latest"
            }
          }
        }
      }

      dynamic "env" {
        for_each = merge(local.environment, {
          DBJOBS_NAME            = each.value.name
          DBJOBS_BUDGET          = "${each.value.timeout_seconds - local.margin_seconds}s"
          DBJOBS_REQUEST_TIMEOUT = "${each.value.timeout_seconds - 1}s"
          DBJOBS_OIDC_AUDIENCE   = each.value.audience
          DBJOBS_OIDC_CALLER     = google_service_account.scheduler.email
        })
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "volume_mounts" {
        for_each = length(var.cloud_sql_instances) == 0 ? [] : ["cloudsql"]
        content {
          name       = volume_mounts.value
          mount_path = "/cloudsql"
        }
      }
    }

    dynamic "volumes" {
      for_each = length(var.cloud_sql_instances) == 0 ? [] : ["cloudsql"]
      content {
        name = volumes.value
        cloud_sql_instance {
          instances = var.cloud_sql_instances
        }
      }
    }

    dynamic "vpc_access" {
      for_each = var.vpc == null ? [] : [var.vpc]
      content {
        connector = vpc_access.value.connector
        egress    = "PRIVATE_RANGES_ONLY"

        dynamic "network_interfaces" {
          for_each = vpc_access.value.subnetwork == null ? [] : [vpc_access.value]
          content {
            network    = network_interfaces.value.network
            subnetwork = network_interfaces.value.subnetwork
          }
        }
      }
    }
  }

  depends_on = [google_project_service.this, google_secret_manager_secret_iam_member.job, google_secret_manager_secret_iam_member.secrets]
}

resource "google_cloud_scheduler_job" "tick" {
  project          = var.project
  region           = coalesce(var.scheduler_region, var.region)
  name             = "${var.name}-tick"
  description      = "Starts a tick of ${var.name}"
  schedule         = local.schedule
  time_zone        = var.time_zone
  paused           = !var.enabled
  attempt_deadline = local.is_service ? "${var.timeout_seconds}s" : "30s" # a job is started only, and not waited for

  retry_config {
    retry_count = 0 # the next minute is the retry
  }

  http_target {
    http_method = "POST"
    uri         = local.is_service ? "${google_cloud_run_v2_service.this["tick"].uri}/tick" : local.start

    dynamic "oidc_token" {
      for_each = local.is_service ? [local.services["tick"].audience] : []
      content {
        service_account_email = google_service_account.scheduler.email
        audience              = oidc_token.value
      }
    }

    dynamic "oauth_token" {
      for_each = local.is_service ? [] : ["https://www.googleapis.com/auth/cloud-platform"]
      content {
        service_account_email = google_service_account.scheduler.email
        scope                 = oauth_token.value
      }
    }
  }

  depends_on = [google_project_service.this, google_cloud_run_v2_job_iam_member.scheduler]
}

resource "google_cloud_scheduler_job" "worker" {
  for_each = var.workers

  project          = var.project
  region           = coalesce(var.scheduler_region, var.region)
  name             = "${var.name}-${each.key}"
  description      = "Starts a worker of the queue ${each.key}"
  schedule         = coalesce(each.value.schedule, "* * * * *")
  time_zone        = var.time_zone
  paused           = !var.enabled
  attempt_deadline = "${each.value.timeout_seconds}s"

  retry_config {
    retry_count = 0 # the next start is the retry
  }

  http_target {
    http_method = "POST"
    uri         = "${google_cloud_run_v2_service.this["work/${each.key}"].uri}/work?queue=${each.key}"

    oidc_token {
      service_account_email = google_service_account.scheduler.email
      audience              = local.services["work/${each.key}"].audience
    }
  }

  depends_on = [google_project_service.this]
}
