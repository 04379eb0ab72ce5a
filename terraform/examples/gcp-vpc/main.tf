# A tick a minute for a Cloud SQL PostgreSQL with a private address, from a clone: this makes a login of the database, keeps its
# URL as a secret, and builds the image and pushes it into a repository of its own. Beside Terraform, that takes Go and make.
#
#   terraform init && terraform apply
#
# ../../README.md has the whole way to the first run.

terraform {
  required_version = ">= 1.11" # write-only arguments

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.27, < 8.0"
    }
  }
}

provider "google" {
  project = var.project
}

variable "project" {
  description = "Id of the project, which has the instance and the network."
  type        = string
}

variable "database_instance" {
  description = "Name of the Cloud SQL instance. It is PostgreSQL, and has a private address only: Cloud Run would prefer a public one."
  type        = string
}

variable "database" {
  description = "Name of the database on the instance, in which the jobs and their history are kept."
  type        = string
}

variable "subnetwork" {
  description = "Subnetwork in the region of the instance, of the network through which its address is reached. A pass takes an address of it."
  type        = string
}

variable "password" {
  description = "Password of the login that is made, at least 16 characters. It goes into the secret and to the instance, and neither into the state nor into a plan; it is asked for each time, and sent if password_version is another one than last time."
  type        = string
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = length(var.password) >= 16
    error_message = "password: want at least 16 characters, such as those of openssl rand -hex 20."
  }
}

variable "password_version" {
  description = "To be raised with each new password: Terraform cannot see that it changed."
  type        = number
  default     = 1
}

variable "image" {
  description = "Container image of dbjobs that is in a registry already, best by its digest; null builds it from this clone, and pushes it."
  type        = string
  default     = null
}

variable "image_tag" {
  description = "Tag of the image that is built: another one builds again, from what the clone has then."
  type        = string
  default     = "1"
}

data "google_sql_database_instance" "this" {
  name = var.database_instance

  lifecycle {
    postcondition {
      condition     = startswith(self.database_version, "POSTGRES_")
      error_message = "${var.database_instance} is ${self.database_version}; this example is for PostgreSQL."
    }
    postcondition {
      condition     = self.private_ip_address != "" && self.public_ip_address == ""
      error_message = "${var.database_instance} has a public address; examples/gcp-minimal reaches it, or take the address away."
    }
  }
}

locals {
  region = data.google_sql_database_instance.this.region
  image  = var.image != null ? var.image : "${local.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.this[0].repository_id}/dbjobs:${var.image_tag}"
}

resource "google_project_service" "this" {
  for_each = toset(concat(["secretmanager.googleapis.com"], var.image == null ? ["artifactregistry.googleapis.com"] : []))

  service            = each.value
  disable_on_destroy = false # others may need it
}

resource "google_artifact_registry_repository" "this" {
  count = var.image == null ? 1 : 0

  location      = local.region
  repository_id = "dbjobs"
  format        = "DOCKER"
  description   = "What runs the passes of dbjobs"

  depends_on = [google_project_service.this]
}

# With the credentials that Terraform has: the application default credentials, or the login of gcloud. If the push fails, the
# next apply tries again.
resource "terraform_data" "image" {
  count = var.image == null ? 1 : 0

  triggers_replace = [local.image]

  provisioner "local-exec" {
    command = "make -C '${path.module}/../../..' image PUSH='${local.image}'"
  }
}

# The login is a member of cloudsqlsuperuser, as all that are made by the API: for a first try, since a job's SQL may then do what
# it may. See GRANT in terraform/README.md for one with few rights. Its name is not that of the schema, which would then be on its
# search path.
resource "google_sql_user" "dbjobs" {
  instance            = data.google_sql_database_instance.this.name
  name                = "jobs"
  password_wo         = var.password
  password_wo_version = var.password_version
  deletion_policy     = "ABANDON" # PostgreSQL removes no login that owns tables
}

resource "google_secret_manager_secret" "database_url" {
  secret_id = "dbjobs-database-url"

  replication {
    auto {}
  }

  depends_on = [google_project_service.this]
}

# The socket is that of Cloud Run, which goes to the private address, and encrypts.
resource "google_secret_manager_secret_version" "database_url" {
  secret                 = google_secret_manager_secret.database_url.id
  secret_data_wo         = "postgres://${google_sql_user.dbjobs.name}:${replace(urlencode(var.password), "+", "%20")}@/${replace(urlencode(var.database), "+", "%20")}?host=/cloudsql/${data.google_sql_database_instance.this.connection_name}"
  secret_data_wo_version = var.password_version

  lifecycle {
    create_before_destroy = true # a service may start an instance with the old one until it has the new one
  }
}

module "dbjobs" {
  source = "../../gcp" # elsewhere: github.com/dbjobs/dbjobs//terraform/gcp?ref=v1.0.0

  project                 = var.project
  region                  = local.region
  image                   = local.image
  database_secret         = google_secret_manager_secret.database_url.secret_id
  database_secret_version = google_secret_manager_secret_version.database_url.version # not latest: a service that runs would keep the old password
  cloud_sql_instances     = [data.google_sql_database_instance.this.connection_name]

  vpc = {
    network    = data.google_sql_database_instance.this.settings[0].ip_configuration[0].private_network
    subnetwork = var.subnetwork
  }

  # Cloud Run refuses a job whose secret has no version yet, or whose image is not there.
  depends_on = [google_secret_manager_secret_version.database_url, google_sql_user.dbjobs, terraform_data.image]
}

output "run" {
  description = "Begins a command of the job: with migrate after it, the schema is made."
  value       = "gcloud run jobs execute ${module.dbjobs.job_name} --project ${var.project} --region ${local.region} --wait --args"
}
