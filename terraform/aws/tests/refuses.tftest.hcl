# What the module refuses, before anything is asked of AWS.

mock_provider "aws" {}

variables {
  zip                         = "tests/function.zip"
  database_secret_arn         = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/db-AbC123"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
}

# Each of the runs with wrong values gives several variables a value that is wrong by itself, and each of these variables has
# to be refused: a run costs a quarter of a second. Below are the values that are wrong beside others.

run "wrong_values_1" {
  command = plan
  variables {
    allow                       = ["migrate", "tick"]                                   # allows no tick by name
    environment                 = { DBJOBS_MANIFESTS = "s3://acme-config/" }            # manifests by the environment
    name                        = "a-name-that-leaves-no-room-for-what-is-to-follow-it" # long name
    architecture                = "amd64"
    database_secret_kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:alias/db" # key alias
    database_url                = "postgres://jobs:geheim@db.example.org/app"      # password in the url
    permissions_boundary_arn    = "boundary"                                       # boundary by name
    trigger                     = "cron"
    schedule_expression         = "rate(1 minutes)"
    timeout_seconds             = 901
    memory_mb                   = 64
    reserved_concurrency        = 0
    vpc                         = { id = "vpc-0123456789abcdef0", subnet_ids = [], database_security_group_id = "sg-1" } # vpc without a subnet
    log_retention_days          = 31
    alarm_actions               = ["ops@example.org"]
  }
  expect_failures = [
    var.allow,
    var.environment,
    var.name,
    var.architecture,
    var.database_secret_kms_key_arn,
    var.database_url,
    var.permissions_boundary_arn,
    var.trigger,
    var.schedule_expression,
    var.timeout_seconds,
    var.memory_mb,
    var.reserved_concurrency,
    var.vpc,
    var.log_retention_days,
    var.alarm_actions,
  ]
}

run "wrong_values_2" {
  command = plan
  variables {
    allow               = ["apply"]
    manifests           = ["s3://acme-config/*"]                                    # manifests with a wildcard
    environment         = { DBJOBS_LAMBDA_ALLOW = "apply" }                         # allow by the environment
    name                = "prod/dbjobs"                                             # name with a slash
    architecture        = "x86_64"                                                  # layer of the other architecture
    database_url        = "postgres://db.example.org/app?user=jobs&password=geheim" # password in the query
    schedule_expression = "rate(5 minute)"
    timeout_seconds     = 10
    margin_seconds      = 6                                                                           # margin longer than half
    vpc                 = { id = "vpc-0123456789abcdef0", subnet_ids = ["subnet-0123456789abcdef0"] } # vpc without a database
  }
  expect_failures = [
    var.manifests,
    var.environment,
    var.name,
    var.secrets_extension_layer_arn,
    var.database_url,
    var.schedule_expression,
    var.margin_seconds,
    var.vpc,
  ]
}

run "wrong_values_3" {
  command = plan
  variables {
    allow               = ["apply"]
    manifests           = ["s3://"]                                                                                                                           # manifests of a whole store
    database_secret_arn = "prod/db"                                                                                                                           # secret by name
    database_url        = "postgres://jobs:gehe/im@db.example.org/app"                                                                                        # password with a slash
    environment         = { DBJOBS_MARGIN = "1s" }                                                                                                            # variable that is set elsewhere
    schedule_expression = "rate(30 seconds)"                                                                                                                  # rate of seconds
    vpc                 = { id = "vpc-0123456789abcdef0", subnet_ids = ["subnet-0123456789abcdef0"], database_security_group_id = "sg-1", database_port = 0 } # vpc port
    wake_lead_seconds   = 31
  }
  expect_failures = [
    var.manifests,
    var.database_secret_arn,
    var.database_url,
    var.environment,
    var.schedule_expression,
    var.vpc,
    var.wake_lead_seconds,
  ]
}

run "wrong_values_4" {
  command = plan
  variables {
    database_secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/*-AbC123" # many secrets
    database_url        = "postgres://jobs:gehe?im@db.example.org/app"                            # password with a question mark
    environment         = { PGPASSWORD = "geheim" }                                               # password as a variable
    schedule_expression = "cron(* * * * *)"                                                       # cron of five fields
    workers             = { tick = {} }                                                           # worker of the ticks queue
  }
  expect_failures = [
    var.database_secret_arn,
    var.database_url,
    var.environment,
    var.schedule_expression,
    var.workers,
  ]
}

run "wrong_values_5" {
  command = plan
  variables {
    secrets_extension_layer_arn = null                                         # secret without the layer
    database_url                = "postgres://jobs:gehe#im@db.example.org/app" # password with a hash
    environment                 = { MYSQL_PWD = "geheim" }                     # another password as a variable
    schedule_expression         = "cron(* * * * * *)"                          # cron without a question mark
    workers                     = { "reports/daily" = {} }                     # worker of a queue with a slash
  }
  expect_failures = [
    var.secrets_extension_layer_arn,
    var.database_url,
    var.environment,
    var.schedule_expression,
    var.workers,
  ]
}

run "wrong_values_6" {
  command = plan
  variables {
    secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64" # layer without a version
    database_url                = "postgres://jobs:gehe@im@db.example.org/app"                                                       # password with an at
    environment                 = { OTHER = "postgres://jobs:ge heim@db.example.org/app" }                                           # url as a variable
    no_tick_minutes             = 1
    workers                     = { a-queue-with-a-name-that-leaves-no-room-for-that-of-the-function = {} } # worker with a long name
  }
  expect_failures = [
    var.secrets_extension_layer_arn,
    var.database_url,
    var.environment,
    var.no_tick_minutes,
    var.workers,
  ]
}

run "wrong_values_7" {
  command = plan
  variables {
    database_url    = "postgres://jobs:geheim"        # password without a host
    environment     = { AWS_REGION = "eu-central-1" } # variable of lambda
    overdue_minutes = 0
    workers         = { reports = { timeout_seconds = 3600 } } # worker for an hour
  }
  expect_failures = [
    var.database_url,
    var.environment,
    var.overdue_minutes,
    var.workers,
  ]
}

run "wrong_values_8" {
  command = plan
  variables {
    database_url = "postgres://db.example.org/app?sslpassword=geheim" # password of the key
    workers      = { reports = { timeout_seconds = 5 } }              # worker shorter than twice the margin
  }
  expect_failures = [
    var.database_url,
    var.workers,
  ]
}

run "wrong_values_9" {
  command = plan
  variables {
    database_url = "sqlite:jobs.db"                 # embedded database
    workers      = { reports = { memory_mb = 64 } } # worker with little memory
  }
  expect_failures = [
    var.database_url,
    var.workers,
  ]
}

run "wrong_values_10" {
  command = plan
  variables {
    workers = { reports = { reserved_concurrency = 0 } } # worker that may not start
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_11" {
  command = plan
  variables {
    workers = { reports = { schedule_expression = "cron(* * * * *)" } } # worker by cron of five fields
  }
  expect_failures = [
    var.workers,
  ]
}

run "no_zip" {
  command = plan
  variables {
    zip = "tests/nothing.zip"
  }
  expect_failures = [aws_lambda_function.this]
}

run "manifests_that_nobody_may_apply" {
  command = plan
  variables {
    allow     = ["migrate"]
    manifests = ["s3://acme-config/jobs/"]
  }
  expect_failures = [var.manifests]
}

run "secrets_without_the_layer" {
  command = plan
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
    database_url                = "postgres://jobs@db.example.org/app"
    rds_iam_user_arns           = ["arn:aws:rds-db:eu-central-1:111122223333:dbuser:db-ABC/jobs"]
    secret_arns                 = ["arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/hook-AbC123"]
  }
  expect_failures = [var.secrets_extension_layer_arn]
}

run "secrets_by_a_wildcard" {
  command = plan
  variables {
    secret_arns = ["arn:aws:secretsmanager:eu-central-1:111122223333:secret:prod/*"]
  }
  expect_failures = [var.secret_arns]
}

run "no_secret" {
  command = plan
  variables {
    database_secret_arn         = null
    secrets_extension_layer_arn = null
  }
  expect_failures = [var.database_secret_arn]
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

# As AWS writes them: minute 0 and each tenth after it.
run "steps_from_a_minute" {
  command = plan
  variables {
    schedule_expression = "cron(0/10 * * * ? *)"
  }
  expect_failures = [var.no_tick_minutes]
}

run "minutes_of_a_cron_expression" {
  command = plan
  variables {
    schedule_expression = "cron(5,20,0 * * * ? *)"
    no_tick_minutes     = 40
    overdue_minutes     = 39
    queued_minutes      = 40
  }
  expect_failures = [var.no_tick_minutes, var.overdue_minutes]
}

run "hours_of_a_cron_expression" {
  command = plan
  variables {
    schedule_expression = "cron(0 */6 * * ? *)"
    no_tick_minutes     = 360
    overdue_minutes     = 360
    queued_minutes      = 359
  }
  expect_failures = [var.no_tick_minutes, var.queued_minutes]
}

# The last one of the day is at 22:40, and the first one at 6:40.
run "hours_from_a_later_one" {
  command = plan
  variables {
    schedule_expression = "cron(40 6/4 * * ? *)"
    no_tick_minutes     = 480
    overdue_minutes     = 480
    queued_minutes      = 479
  }
  expect_failures = [var.no_tick_minutes, var.queued_minutes]
}

# The night is a pause, and the two hours between ticks are none.
run "steps_in_a_range" {
  command = plan
  variables {
    schedule_expression = "cron(0-59/20 8-18/2 * * ? *)"
    no_tick_minutes     = 80
    overdue_minutes     = 80
    queued_minutes      = 79
  }
  expect_failures = [var.no_tick_minutes, var.queued_minutes]
}

run "worker_that_keeps_the_database_awake" {
  command = plan
  variables {
    workers = { reports = {} }
    wake    = true
  }
  expect_failures = [var.workers]
}

# The alarm for missing ticks would look back for longer than CloudWatch does.
run "a_safety_trigger_of_a_day" {
  command = plan
  variables {
    wake                = true
    schedule_expression = "rate(1 day)"
  }
  expect_failures = [var.no_tick_minutes]
}

run "a_safety_trigger_of_an_hour_of_the_day" {
  command = plan
  variables {
    wake                = true
    schedule_expression = "cron(30 4 * * ? *)"
  }
  expect_failures = [var.no_tick_minutes]
}

# What the margin leaves to a tick would end before the alarm's instant, and each tick would be refused.
run "lead_longer_than_the_budget" {
  command = plan
  variables {
    wake              = true
    timeout_seconds   = 60
    margin_seconds    = 28
    wake_lead_seconds = 30
  }
  expect_failures = [var.wake_lead_seconds]
}
