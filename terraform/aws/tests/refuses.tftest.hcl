# What the module refuses, before anything is asked of AWS.

mock_provider "aws" {}

variables {
  zip                         = "tests/function.zip"
  database_secret_arn         = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
}

run "no_zip" {
  command = plan
  variables {
    zip = "tests/nothing.zip"
  }
  expect_failures = [aws_lambda_function.this]
}

run "allows_no_tick_by_name" {
  command = plan
  variables {
    allow = ["migrate", "tick"]
  }
  expect_failures = [var.allow]
}

run "manifests_with_a_wildcard" {
  command = plan
  variables {
    allow     = ["apply"]
    manifests = ["s3://acme-config/*"]
  }
  expect_failures = [var.manifests]
}

run "manifests_of_a_whole_store" {
  command = plan
  variables {
    allow     = ["apply"]
    manifests = ["s3://"]
  }
  expect_failures = [var.manifests]
}

run "manifests_that_nobody_may_apply" {
  command = plan
  variables {
    allow     = ["migrate"]
    manifests = ["s3://acme-config/jobs/"]
  }
  expect_failures = [var.manifests]
}

run "manifests_by_the_environment" {
  command = plan
  variables {
    environment = { DBJOBS_MANIFESTS = "s3://acme-config/" }
  }
  expect_failures = [var.environment]
}

run "allow_by_the_environment" {
  command = plan
  variables {
    environment = { DBJOBS_LAMBDA_ALLOW = "apply" }
  }
  expect_failures = [var.environment]
}

run "long_name" {
  command = plan
  variables {
    name = "a-name-that-leaves-no-room-for-what-is-to-follow-it"
  }
  expect_failures = [var.name]
}

run "name_with_a_slash" {
  command = plan
  variables {
    name = "prod/dbjobs"
  }
  expect_failures = [var.name]
}

run "architecture" {
  command = plan
  variables {
    architecture = "amd64"
  }
  expect_failures = [var.architecture]
}

run "layer_of_the_other_architecture" {
  command = plan
  variables {
    architecture = "x86_64"
  }
  expect_failures = [var.secrets_extension_layer_arn]
}

run "secret_by_name" {
  command = plan
  variables {
    database_secret_arn = "prod/db"
  }
  expect_failures = [var.database_secret_arn]
}

run "many_secrets" {
  command = plan
  variables {
    database_secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/*-AbC123"
  }
  expect_failures = [var.database_secret_arn]
}

run "no_secret" {
  command = plan
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
  }
  expect_failures = [var.database_secret_arn]
}

run "secret_without_the_layer" {
  command = plan
  variables {
    secrets_extension_layer_arn = null
  }
  expect_failures = [var.secrets_extension_layer_arn]
}

run "layer_without_a_version" {
  command = plan
  variables {
    secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64"
  }
  expect_failures = [var.secrets_extension_layer_arn]
}

run "key_alias" {
  command = plan
  variables {
    database_secret_kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:alias/db"
  }
  expect_failures = [var.database_secret_kms_key_arn]
}

run "password_in_the_url" {
  command = plan
  variables {
    database_url = "postgres://jobs:geheim@db.example.org/app"
  }
  expect_failures = [var.database_url]
}

run "password_in_the_query" {
  command = plan
  variables {
    database_url = "postgres://db.example.org/app?user=jobs&password=geheim"
  }
  expect_failures = [var.database_url]
}

run "password_with_a_slash" {
  command = plan
  variables {
    database_url = "postgres://jobs:gehe/im@db.example.org/app"
  }
  expect_failures = [var.database_url]
}

run "password_with_a_question_mark" {
  command = plan
  variables {
    database_url = "postgres://jobs:gehe?im@db.example.org/app"
  }
  expect_failures = [var.database_url]
}

run "password_with_a_hash" {
  command = plan
  variables {
    database_url = "postgres://jobs:gehe#im@db.example.org/app"
  }
  expect_failures = [var.database_url]
}

run "password_with_an_at" {
  command = plan
  variables {
    database_url = "postgres://jobs:gehe@im@db.example.org/app"
  }
  expect_failures = [var.database_url]
}

run "password_without_a_host" {
  command = plan
  variables {
    database_url = "postgres://jobs:geheim"
  }
  expect_failures = [var.database_url]
}

run "password_of_the_key" {
  command = plan
  variables {
    database_url = "postgres://db.example.org/app?sslpassword=geheim"
  }
  expect_failures = [var.database_url]
}

run "embedded_database" {
  command = plan
  variables {
    database_url = "sqlite:jobs.db"
  }
  expect_failures = [var.database_url]
}

run "token_without_a_url" {
  command = plan
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
    rds_iam_user_arns           = ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABC/jobs"]
  }
  expect_failures = [var.database_url]
}

run "token_for_every_user" {
  command = plan
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
    database_url                = "postgres://jobs@db.example.org/app"
    rds_iam_user_arns           = ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABC/*"]
  }
  expect_failures = [var.rds_iam_user_arns]
}

run "variable_that_is_set_elsewhere" {
  command = plan
  variables {
    environment = { DBJOBS_MARGIN = "1s" }
  }
  expect_failures = [var.environment]
}

run "password_as_a_variable" {
  command = plan
  variables {
    environment = { PGPASSWORD = "geheim" }
  }
  expect_failures = [var.environment]
}

run "another_password_as_a_variable" {
  command = plan
  variables {
    environment = { MYSQL_PWD = "geheim" }
  }
  expect_failures = [var.environment]
}

run "url_as_a_variable" {
  command = plan
  variables {
    environment = { OTHER = "postgres://jobs:geheim@db.example.org/app" }
  }
  expect_failures = [var.environment]
}

run "variable_of_lambda" {
  command = plan
  variables {
    environment = { AWS_REGION = "eu-central-1" }
  }
  expect_failures = [var.environment]
}

run "boundary_by_name" {
  command = plan
  variables {
    permissions_boundary_arn = "boundary"
  }
  expect_failures = [var.permissions_boundary_arn]
}

run "trigger" {
  command = plan
  variables {
    trigger = "cron"
  }
  expect_failures = [var.trigger]
}

run "rate_1_minutes" {
  command = plan
  variables {
    schedule_expression = "rate(1 minutes)"
  }
  expect_failures = [var.schedule_expression]
}

run "rate_5_minute" {
  command = plan
  variables {
    schedule_expression = "rate(5 minute)"
  }
  expect_failures = [var.schedule_expression]
}

run "rate_of_seconds" {
  command = plan
  variables {
    schedule_expression = "rate(30 seconds)"
  }
  expect_failures = [var.schedule_expression]
}

run "cron_of_five_fields" {
  command = plan
  variables {
    schedule_expression = "cron(* * * * *)"
  }
  expect_failures = [var.schedule_expression]
}

run "cron_without_a_question_mark" {
  command = plan
  variables {
    schedule_expression = "cron(* * * * * *)"
  }
  expect_failures = [var.schedule_expression]
}

run "timeout" {
  command = plan
  variables {
    timeout_seconds = 901
  }
  expect_failures = [var.timeout_seconds]
}

run "margin_longer_than_half" {
  command = plan
  variables {
    timeout_seconds = 10
    margin_seconds  = 6
  }
  expect_failures = [var.margin_seconds]
}

run "memory" {
  command = plan
  variables {
    memory_mb = 64
  }
  expect_failures = [var.memory_mb]
}

run "concurrency_zero" {
  command = plan
  variables {
    reserved_concurrency = 0
  }
  expect_failures = [var.reserved_concurrency]
}

run "vpc_without_a_subnet" {
  command = plan
  variables {
    vpc = { id = "vpc-0123456789abcdef0", subnet_ids = [], database_security_group_id = "sg-1" }
  }
  expect_failures = [var.vpc]
}

run "vpc_without_a_database" {
  command = plan
  variables {
    vpc = { id = "vpc-0123456789abcdef0", subnet_ids = ["subnet-0123456789abcdef0"] }
  }
  expect_failures = [var.vpc]
}

run "vpc_port" {
  command = plan
  variables {
    vpc = { id = "vpc-0123456789abcdef0", subnet_ids = ["subnet-0123456789abcdef0"], database_security_group_id = "sg-1", database_port = 0 }
  }
  expect_failures = [var.vpc]
}

run "retention" {
  command = plan
  variables {
    log_retention_days = 31
  }
  expect_failures = [var.log_retention_days]
}

run "alarm_action" {
  command = plan
  variables {
    alarm_actions = ["ops@example.org"]
  }
  expect_failures = [var.alarm_actions]
}

run "no_tick" {
  command = plan
  variables {
    no_tick_minutes = 1
  }
  expect_failures = [var.no_tick_minutes]
}

run "overdue" {
  command = plan
  variables {
    overdue_minutes = 0
  }
  expect_failures = [var.overdue_minutes]
}

run "alarms_that_would_go_on_and_off" {
  command = plan
  variables {
    schedule_expression = "rate(20 minutes)"
  }
  expect_failures = [var.no_tick_minutes, var.overdue_minutes, var.queued_minutes]
}

run "an_hour_between_two_ticks" {
  command = plan
  variables {
    schedule_expression = "cron(0 8-18 ? * * *)"
    no_tick_minutes     = 0
    overdue_minutes     = 60
    queued_minutes      = 59
  }
  expect_failures = [var.queued_minutes]
}

run "steps_of_a_cron_expression" {
  command = plan
  variables {
    schedule_expression = "cron(*/5 * ? * * *)"
  }
  expect_failures = [var.no_tick_minutes]
}

run "wake_lead_seconds" {
  command = plan
  variables {
    wake_lead_seconds = 31
  }
  expect_failures = [var.wake_lead_seconds]
}

run "worker_of_the_ticks_queue" {
  command = plan
  variables {
    workers = { tick = {} }
  }
  expect_failures = [var.workers]
}

run "worker_of_a_queue_with_a_slash" {
  command = plan
  variables {
    workers = { "reports/daily" = {} }
  }
  expect_failures = [var.workers]
}

run "worker_with_a_long_name" {
  command = plan
  variables {
    workers = { a-queue-with-a-name-that-leaves-no-room-for-that-of-the-function = {} }
  }
  expect_failures = [var.workers]
}

run "worker_for_an_hour" {
  command = plan
  variables {
    workers = { reports = { timeout_seconds = 3600 } }
  }
  expect_failures = [var.workers]
}

run "worker_shorter_than_twice_the_margin" {
  command = plan
  variables {
    workers = { reports = { timeout_seconds = 5 } }
  }
  expect_failures = [var.workers]
}

run "worker_with_little_memory" {
  command = plan
  variables {
    workers = { reports = { memory_mb = 64 } }
  }
  expect_failures = [var.workers]
}

run "worker_that_may_not_start" {
  command = plan
  variables {
    workers = { reports = { reserved_concurrency = 0 } }
  }
  expect_failures = [var.workers]
}

run "worker_by_cron_of_five_fields" {
  command = plan
  variables {
    workers = { reports = { schedule_expression = "cron(* * * * *)" } }
  }
  expect_failures = [var.workers]
}

run "worker_that_keeps_the_database_awake" {
  command = plan
  variables {
    workers = { reports = {} }
    wake    = true
  }
  expect_failures = [var.workers]
}
