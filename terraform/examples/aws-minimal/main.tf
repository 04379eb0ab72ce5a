# A tick a minute for a database that is reached over the internet, by TLS:
#
#   make lambda.zip
#   export TF_VAR_database_url='postgres://jobs:...@db.example.org/app?sslmode=verify-full'
#   terraform init && terraform apply -var region=eu-central-1 -var secrets_extension_layer_arn=arn:aws:lambda:...

terraform {
  required_version = ">= 1.11" # write-only arguments

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  description = "Region of the function, best the database's."
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

variable "secrets_extension_layer_arn" {
  description = "ARN of the layer AWS Parameters and Secrets Lambda Extension (Arm64) in this region."
  type        = string
}

variable "zip" {
  description = "Path of the function's zip file; null is what `make lambda.zip` makes in this clone."
  type        = string
  default     = null
}

# With a prefix, so that it can be made again while the old one waits to be deleted.
resource "aws_secretsmanager_secret" "database_url" {
  name_prefix = "dbjobs-database-url-"
  description = "The database that dbjobs works on"
}

resource "aws_secretsmanager_secret_version" "database_url" {
  secret_id                = aws_secretsmanager_secret.database_url.id
  secret_string_wo         = var.database_url
  secret_string_wo_version = var.database_url_version
}

module "dbjobs" {
  source = "../../aws" # elsewhere: github.com/dbjobs/dbjobs//terraform/aws?ref=v1.0.0

  database_secret_arn         = aws_secretsmanager_secret.database_url.arn
  secrets_extension_layer_arn = var.secrets_extension_layer_arn
  zip                         = var.zip

  # The first tick is to find the URL.
  depends_on = [aws_secretsmanager_secret_version.database_url]
}

output "try" {
  description = "Runs a pass now, and tells what it did."
  value       = "aws lambda invoke --region ${var.region} --function-name ${module.dbjobs.function_name}:live /dev/stdout"
}
