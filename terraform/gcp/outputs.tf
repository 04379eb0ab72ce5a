output "job_name" {
  description = "Name of the Cloud Run job: `gcloud run jobs execute NAME --region REGION --wait` runs a pass, and with `--args migrate` another command."
  value       = google_cloud_run_v2_job.this.name
}

output "job_id" {
  description = "Id of the Cloud Run job, projects/PROJECT/locations/REGION/jobs/NAME."
  value       = google_cloud_run_v2_job.this.id
}

output "service_uri" {
  description = "Where the service answers; null where the trigger starts the job."
  value       = try(google_cloud_run_v2_service.this["tick"].uri, null)
}

output "worker_service_uris" {
  description = "Where the workers' services answer, by their queues."
  value       = { for queue in keys(var.workers) : queue => google_cloud_run_v2_service.this["work/${queue}"].uri }
}

output "scheduler_job_id" {
  description = "Id of the Cloud Scheduler job."
  value       = google_cloud_scheduler_job.tick.id
}

output "job_service_account_email" {
  description = "Account that passes run as, to give more rights to, such as those of jobs."
  value       = google_service_account.job.email
}

output "scheduler_service_account_email" {
  description = "Account that starts passes."
  value       = google_service_account.scheduler.email
}

output "alert_policy_names" {
  description = "Names of the alert policies, by their names, such as failed, no_tick and overdue."
  value = merge(
    { failed = google_monitoring_alert_policy.failed.name },
    { for name, policy in google_monitoring_alert_policy.figure : name => policy.name },
    { for policy in google_monitoring_alert_policy.no_tick[*] : "no_tick" => policy.name },
  )
}
