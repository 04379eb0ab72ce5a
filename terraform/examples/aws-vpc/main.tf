# A tick a minute for an RDS PostgreSQL in private subnets, with an endpoint to read its secret without a NAT gateway,
# EventBridge Scheduler as the trigger, and alarms by e-mail. ../aws-aurora is the same with an Aurora cluster that sleeps.
#
#   make lambda.zip LAMBDA_FILES=.build/global-bundle.pem
#   terraform init && terraform apply -var-file=mine.tfvars
#
# ../../README.md has the whole way to the first run.

terraform {
  required_version = ">= 1.9"

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
  description = "Region of the database."
  type        = string
}

variable "vpc_id" {
  description = "VPC of the database; its DNS support and DNS hostnames have to be on."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets for the function, in two zones."
  type        = list(string)
}

variable "database_identifier" {
  description = "Identifier of the RDS instance. Without database_secret_arn, RDS has to manage its master password (manage_master_user_password)."
  type        = string
}

variable "database_secret_arn" {
  description = "Secret of the login that ticks work as, which needs few rights: see GRANT in terraform/README.md. Null is the secret of the MASTER user, which RDS keeps: for a first try, since a job's SQL may then do everything."
  type        = string
  default     = null
}

variable "database_secret_kms_key_arn" {
  description = "Key of yours that encrypts database_secret_arn; null if it is the account's."
  type        = string
  default     = null
}

variable "database_security_group_id" {
  description = "Security group of the instance that lets the function in; null is the first by its id."
  type        = string
  default     = null
}

variable "secrets_extension_layer_arn" {
  description = "ARN of the layer AWS Parameters and Secrets Lambda Extension (Arm64) in this region."
  type        = string
}

variable "alarm_email" {
  description = "Address that alarms are sent to, once it has confirmed that it wants them."
  type        = string
}

variable "allow" {
  description = "What the function does for each caller, where nothing else reaches the database: migrate, apply, export, status, check, run-now."
  type        = list(string)
  default     = []
}

variable "zip" {
  description = "Path of the function's zip file; null is what `make lambda.zip` makes in this clone."
  type        = string
  default     = null
}

data "aws_db_instance" "this" {
  db_instance_identifier = var.database_identifier
}

locals {
  # An instance may have several groups, and one that lets the function in is enough.
  database_security_group_id = coalesce(var.database_security_group_id, sort(data.aws_db_instance.this.vpc_security_groups)[0])

  master = one(data.aws_db_instance.this.master_user_secret)
  secret = {
    arn     = var.database_secret_arn == null ? try(local.master.secret_arn, null) : var.database_secret_arn
    kms_key = var.database_secret_arn == null ? try(local.master.kms_key_id, null) : var.database_secret_kms_key_arn
  }
}

module "dbjobs" {
  source = "../../aws" # elsewhere: github.com/dbjobs/dbjobs//terraform/aws?ref=v1.0.0

  trigger                     = "scheduler"
  database_secret_arn         = local.secret.arn
  database_secret_kms_key_arn = local.secret.kms_key
  secrets_extension_layer_arn = var.secrets_extension_layer_arn
  zip                         = var.zip
  allow                       = var.allow
  alarm_actions               = [aws_sns_topic.alarms.arn]

  # A secret of RDS holds the user and the password, and not always where the database is.
  database_url = "postgres://${data.aws_db_instance.this.endpoint}/${data.aws_db_instance.this.db_name}?sslmode=verify-full&sslrootcert=/var/task/global-bundle.pem"

  vpc = {
    id                         = var.vpc_id
    subnet_ids                 = var.subnet_ids
    database_port              = data.aws_db_instance.this.port
    database_security_group_id = local.database_security_group_id
  }

  # The first tick is to reach the secret.
  depends_on = [aws_vpc_endpoint.secrets]
}

# The function has no way out of the private subnets but this one.
resource "aws_vpc_endpoint" "secrets" {
  vpc_id              = var.vpc_id
  service_name        = "com.amazonaws.${var.region}.secretsmanager"
  vpc_endpoint_type   = "Interface"
  subnet_ids          = var.subnet_ids
  security_group_ids  = [aws_security_group.endpoint.id]
  private_dns_enabled = true
}

resource "aws_security_group" "endpoint" {
  name_prefix = "dbjobs-secrets-"
  description = "Secrets Manager, for dbjobs"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "endpoint" {
  security_group_id            = aws_security_group.endpoint.id
  description                  = "dbjobs"
  referenced_security_group_id = module.dbjobs.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_sns_topic" "alarms" {
  name = "dbjobs-alarms"
}

resource "aws_sns_topic_subscription" "email" {
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_email
}

output "try" {
  description = "Runs a pass now, and tells what it did."
  value       = "aws lambda invoke --region ${var.region} --function-name ${module.dbjobs.function_name}:live /dev/stdout"
}
