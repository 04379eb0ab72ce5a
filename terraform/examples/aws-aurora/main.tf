# An Aurora PostgreSQL that sleeps while nothing is due: Serverless v2 from 0 ACU in private subnets, passes that set alarms for
# what is due next, endpoints instead of a NAT gateway, and alarms by e-mail.
#
#   make lambda.zip LAMBDA_FILES=.build/global-bundle.pem
#   terraform init && terraform apply -var-file=mine.tfvars
#
# Aurora pauses only where nobody holds a connection: an RDS Proxy, or an application's pool, keeps it awake.
# ../../README.md has the whole way to the first run; ../../COST.md says what sleeping saves.

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
  description = "Private subnets for the database and the function, in two zones at least."
  type        = list(string)
}

variable "max_capacity" {
  description = "Most ACUs that the database takes."
  type        = number
  default     = 2
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

resource "aws_db_subnet_group" "this" {
  name       = "dbjobs"
  subnet_ids = var.subnet_ids
}

resource "aws_security_group" "database" {
  name_prefix = "dbjobs-database-"
  description = "The database of dbjobs"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  security_group_id            = aws_security_group.database.id
  description                  = "dbjobs"
  referenced_security_group_id = module.dbjobs.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_rds_cluster" "this" {
  cluster_identifier          = "dbjobs"
  engine                      = "aurora-postgresql"
  engine_version              = "17" # each of its minor versions may pause; of 16, those from 16.3 on
  database_name               = "app"
  master_username             = "postgres"
  manage_master_user_password = true
  db_subnet_group_name        = aws_db_subnet_group.this.name
  vpc_security_group_ids      = [aws_security_group.database.id]
  storage_encrypted           = true
  deletion_protection         = true
  final_snapshot_identifier   = "dbjobs-final"

  serverlessv2_scaling_configuration {
    min_capacity             = 0
    max_capacity             = var.max_capacity
    seconds_until_auto_pause = 300 # the least there is
  }
}

resource "aws_rds_cluster_instance" "this" {
  identifier         = "dbjobs-1"
  cluster_identifier = aws_rds_cluster.this.id
  engine             = aws_rds_cluster.this.engine
  engine_version     = aws_rds_cluster.this.engine_version_actual
  instance_class     = "db.serverless"
}

# The rules of the function are made before the database has its group's id, so they go by addresses.
data "aws_subnet" "this" {
  for_each = toset(var.subnet_ids)
  id       = each.value
}

module "dbjobs" {
  source = "../../aws" # elsewhere: github.com/dbjobs/dbjobs//terraform/aws?ref=v1.0.0

  # Alarms ring a minute early: EventBridge Scheduler may be late by that, and the database takes 15 seconds to wake, or 30
  # after a day. The pass waits for what is due.
  wake              = true
  wake_lead_seconds = 60
  timeout_seconds   = 180

  database_secret_arn         = var.database_secret_arn == null ? aws_rds_cluster.this.master_user_secret[0].secret_arn : var.database_secret_arn
  database_secret_kms_key_arn = var.database_secret_arn == null ? aws_rds_cluster.this.master_user_secret[0].kms_key_id : var.database_secret_kms_key_arn
  secrets_extension_layer_arn = var.secrets_extension_layer_arn
  zip                         = var.zip
  allow                       = var.allow
  alarm_actions               = [aws_sns_topic.alarms.arn]

  # A secret of RDS holds the user and the password, and not where the database is.
  database_url = "postgres://${aws_rds_cluster.this.endpoint}:5432/${aws_rds_cluster.this.database_name}?sslmode=verify-full&sslrootcert=/var/task/global-bundle.pem"

  vpc = {
    id                   = var.vpc_id
    subnet_ids           = var.subnet_ids
    database_port        = 5432
    database_cidr_blocks = [for subnet in data.aws_subnet.this : subnet.cidr_block]
  }

  # The first tick is to reach the secret and the database.
  depends_on = [aws_vpc_endpoint.this, aws_rds_cluster_instance.this]
}

# The function has no way out of the private subnets but these: to its secret, and to the alarms that it sets. Each is billed
# by the hour and the zone.
resource "aws_vpc_endpoint" "this" {
  for_each = toset(["secretsmanager", "scheduler"])

  vpc_id              = var.vpc_id
  service_name        = "com.amazonaws.${var.region}.${each.value}"
  vpc_endpoint_type   = "Interface"
  subnet_ids          = var.subnet_ids
  security_group_ids  = [aws_security_group.endpoint.id]
  private_dns_enabled = true
}

resource "aws_security_group" "endpoint" {
  name_prefix = "dbjobs-endpoints-"
  description = "Secrets Manager and EventBridge Scheduler, for dbjobs"
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
