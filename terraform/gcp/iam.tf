# Whom the job runs as.
resource "google_service_account" "job" {
  project      = var.project
  account_id   = "${var.name}-job"
  display_name = "Runs the passes of ${var.name}"

  depends_on = [google_project_service.this]
}

resource "google_secret_manager_secret_iam_member" "job" {
  project   = var.project
  secret_id = var.database_secret
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.job.email}"

  depends_on = [google_project_service.this]
}

# One for each name, and not for each secret: Terraform may learn only at apply which secret a name stands for.
resource "google_secret_manager_secret_iam_member" "secrets" {
  for_each = var.secrets

  project   = var.project
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.job.email}"

  depends_on = [google_project_service.this]
}

# The role is one of a whole project; the condition narrows it to the instance.
resource "google_project_iam_member" "cloud_sql" {
  for_each = toset(var.cloud_sql_instances)

  project = split(":", each.value)[0]
  role    = "roles/cloudsql.client"
  member  = "serviceAccount:${google_service_account.job.email}"

  condition {
    title       = "only ${split(":", each.value)[2]}"
    description = "${var.name} connects to this instance only"
    expression  = "resource.service == \"sqladmin.googleapis.com\" && resource.name == \"projects/${split(":", each.value)[0]}/instances/${split(":", each.value)[2]}\""
  }

  depends_on = [google_project_service.this]
}

# The role is one of a whole bucket; the condition narrows it to the manifests.
resource "google_storage_bucket_iam_member" "manifests" {
  for_each = toset(var.manifests)

  bucket = split("/", each.value)[2]
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${google_service_account.job.email}"

  condition {
    title       = "only manifests"
    description = "${var.name} reads ${each.value} only"
    expression = format(
      endswith(each.value, "/") ? "resource.name.startsWith(\"%s\")" : "resource.name == \"%s\"",
      "projects/_/buckets/${split("/", each.value)[2]}/objects/${join("/", slice(split("/", each.value), 3, length(split("/", each.value))))}",
    )
  }
}

# Who starts it, and may do nothing else.
resource "google_service_account" "scheduler" {
  project      = var.project
  account_id   = "${var.name}-scheduler"
  display_name = "Starts the passes of ${var.name}"

  depends_on = [google_project_service.this]
}

# Where the trigger is off, the alarms that are set start nothing, either: each of their passes would set the next one.
resource "google_cloud_run_v2_job_iam_member" "scheduler" {
  count = local.is_service || !var.enabled ? 0 : 1

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_job.this.name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${google_service_account.scheduler.email}"
}

# A pass sets alarms that start the job as the scheduler's account. To add them to the queue is a right on the queue.
resource "google_service_account_iam_member" "job" {
  count = local.wake ? 1 : 0

  service_account_id = google_service_account.scheduler.name
  role               = "roles/iam.serviceAccountUser"
  member             = "serviceAccount:${google_service_account.job.email}"
}
