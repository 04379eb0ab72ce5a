# A tick a minute by a Cloud Run service, for a database that is reached over the internet, by TLS:
#
#   push the image of scripts/Dockerfile to Artifact Registry
#   export TF_VAR_database_url='postgres://jobs:...@db.example.org/app?sslmode=verify-full'
#   terraform init && terraform apply -var project=acme-prod -var region=europe-west3 -var image=...

terraform {
  required_version = ">= 1.11" # write-only arguments

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.25, < 8.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
}

variable "project" {
  description = "Id of the project."
  type        = string
}

variable "region" {
  description = "Region of the job, best the database's."
  type        = string
}

variable "image" {
  description = "Container image of dbjobs, best by its digest."
  type        = string
}

variable "database_url" {
  description = "URL of the database with its password. It goes into the secret, and neither into the state nor into a plan."
  type        = string
  sensitive   = true
  ephemeral   = true
}

variable "database_url_version" {
  description = "To be raised with each new database_url: Terraform cannot see that it changed."
  type        = number
  default     = 1
}

resource "google_project_service" "secrets" {
  project            = var.project
  service            = "secretmanager.googleapis.com"
  disable_on_destroy = false
}

resource "google_secret_manager_secret" "database_url" {
  project   = var.project
  secret_id = "dbjobs-database-url"

  replication {
    auto {}
  }

  depends_on = [google_project_service.secrets]
}

resource "google_secret_manager_secret_version" "database_url" {
  secret                 = google_secret_manager_secret.database_url.id
  secret_data_wo         = var.database_url
  secret_data_wo_version = var.database_url_version

  lifecycle {
    create_before_destroy = true # a service may start an instance with the old one until it has the new one
  }
}

module "dbjobs" {
  source = "../../gcp" # elsewhere: github.com/dbjobs/dbjobs//terraform/gcp?ref=v1.0.0

  project                 = var.project
  region                  = var.region
  image                   = var.image
  database_secret         = google_secret_manager_secret.database_url.secret_id
  database_secret_version = google_secret_manager_secret_version.database_url.version # not latest: a service that runs would keep the old URL

  # Cloud Run refuses a job whose secret has no version yet.
  depends_on = [google_secret_manager_secret_version.database_url]
}

output "try" {
  description = "Runs a pass now, and waits for its end."
  value       = "gcloud run jobs execute ${module.dbjobs.job_name} --project ${var.project} --region ${var.region} --wait"
}
