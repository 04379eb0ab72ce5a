# dbjobs as a task on ECS Fargate, started each minute by EventBridge Scheduler, for who has a cluster already:
#
#   terraform init && terraform apply -var-file=mine.tfvars

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

variable "name" {
  description = "Name of the task, and of what belongs to it. Another installation in the same account needs another name."
  type        = string
  default     = "dbjobs"

  validation {
    # The longest name made from it is an IAM role's, of 64 characters.
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{0,39}$", var.name))
    error_message = "name: want a letter, then at most 39 letters, digits and hyphens."
  }
}

variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "cluster_arn" {
  description = "ARN of the cluster."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the task, with a way to the registry, to Secrets Manager, to CloudWatch Logs and to the database."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Security groups of the task."
  type        = list(string)
}

variable "image" {
  description = "Container image of dbjobs."
  type        = string
}

variable "architecture" {
  description = "What the image was made for: X86_64, as `make image` makes it, or ARM64 (`make image IMAGE_ARCH=arm64`), which costs a fifth less."
  type        = string
  default     = "X86_64"

  validation {
    condition     = contains(["X86_64", "ARM64"], var.architecture)
    error_message = "architecture: want X86_64 or ARM64."
  }
}

variable "database_secret_arn" {
  description = "ARN of the Secrets Manager secret that holds the database's URL as its whole text."
  type        = string
}

provider "aws" {
  region = var.region
}

locals {
  # arn:PARTITION:ecs:REGION:ACCOUNT:cluster/NAME
  account = split(":", var.cluster_arn)[4]
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/ecs/${var.name}"
  retention_in_days = 30
}

resource "aws_ecs_task_definition" "tick" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = 256
  memory                   = 512
  execution_role_arn       = aws_iam_role.execution.arn # of ECS; dbjobs itself needs no role

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.architecture
  }

  container_definitions = jsonencode([{
    name                   = "tick"
    image                  = var.image
    command                = ["tick", "--budget", "5m"]
    essential              = true
    readonlyRootFilesystem = true
    secrets                = [{ name = "DBJOBS_DATABASE_URL", valueFrom = var.database_secret_arn }]
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        "awslogs-group"         = aws_cloudwatch_log_group.this.name
        "awslogs-region"        = var.region
        "awslogs-stream-prefix" = "tick"
      }
    }
  }])
}

resource "aws_iam_role" "execution" {
  name = "${var.name}-execution"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy" "execution" {
  name = "execution"
  role = aws_iam_role.execution.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.this.arn}:*" },
      { Effect = "Allow", Action = ["secretsmanager:GetSecretValue"], Resource = var.database_secret_arn },
      # To pull an image from ECR; the token names no repository.
      { Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = "*" },
      { Effect = "Allow", Action = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], Resource = "arn:${split(":", var.cluster_arn)[1]}:ecr:${var.region}:${local.account}:repository/*" },
    ]
  })
}

resource "aws_scheduler_schedule" "tick" {
  name                = "${var.name}-tick"
  description         = "Starts a tick of dbjobs"
  schedule_expression = "rate(1 minute)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = var.cluster_arn
    role_arn = aws_iam_role.scheduler.arn

    ecs_parameters {
      task_definition_arn = aws_ecs_task_definition.tick.arn
      launch_type         = "FARGATE"
      network_configuration {
        subnets         = var.subnet_ids
        security_groups = var.security_group_ids
      }
    }

    retry_policy {
      maximum_retry_attempts       = 0 # the next minute is the retry
      maximum_event_age_in_seconds = 60
    }
  }
}

resource "aws_iam_role" "scheduler" {
  name = "${var.name}-ecs-scheduler"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy" "scheduler" {
  name = "scheduler"
  role = aws_iam_role.scheduler.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Action    = ["ecs:RunTask"]
        Resource  = aws_ecs_task_definition.tick.arn
        Condition = { ArnEquals = { "ecs:cluster" = var.cluster_arn } }
      },
      {
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = aws_iam_role.execution.arn
        Condition = { StringEquals = { "iam:PassedToService" = "ecs-tasks.amazonaws.com" } }
      },
    ]
  })
}
