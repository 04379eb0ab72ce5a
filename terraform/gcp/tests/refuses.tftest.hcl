# What the module refuses, before anything is asked of Google.

mock_provider "google" {}

variables {
  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_secret = "dbjobs-database-url"
}

# Each of the runs with wrong values gives several variables a value that is wrong by itself, and each of these variables has
# to be refused: a run costs a quarter of a second. Below are the values that are wrong beside others.

run "wrong_values_1" {
  command = plan
  variables {
    project                 = "123456789012"   # project number
    region                  = "europe-west3-a" # zone instead of a region
    scheduler_region        = "eu"
    name                    = "a-name-of-more-than-20"                    # long name
    image                   = "dbjobs"                                    # image without a host
    database_secret         = "projects/acme-prod/secrets/url/versions/3" # secret with its version
    database_secret_version = "newest"
    environment             = { DBJOBS_DATABASE_URL = "postgres://db.example.org/app" } # variable that is set elsewhere
    schedule                = "0 * * * * *"                                             # schedule of six fields
    time_zone               = "UTC+1"
    cpu                     = 3
    memory_mb               = 256
    vpc                     = { connector = "main", subnetwork = "jobs" } # vpc of two kinds
    cloud_sql_instances     = ["main"]
    notification_channels   = ["ops@example.org"]
    wake_queue              = "dbjobs"
    manifests               = ["gs://acme-config/a\") || true || (\"/"] # manifests with a quote
  }
  expect_failures = [
    var.project,
    var.region,
    var.scheduler_region,
    var.name,
    var.image,
    var.database_secret,
    var.database_secret_version,
    var.environment,
    var.schedule,
    var.time_zone,
    var.cpu,
    var.memory_mb,
    var.vpc,
    var.cloud_sql_instances,
    var.notification_channels,
    var.wake_queue,
    var.manifests,
  ]
}

run "wrong_values_2" {
  command = plan
  variables {
    name              = "Dbjobs"                                                       # name in capitals
    image             = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs@sha256:12" # image with a short digest
    schedule          = "every 1 minutes"                                              # schedule as a rate
    vpc               = {}                                                             # vpc of nothing
    environment       = { PGPASSWORD = "geheim" }                                      # password as a variable
    secrets           = { HOOK-1 = "shop-hook" }                                       # secret that no variable can have
    wake_lead_seconds = 200
    manifests         = ["s3://acme-config/jobs/"] # manifests of another store
  }
  expect_failures = [
    var.name,
    var.image,
    var.schedule,
    var.vpc,
    var.environment,
    var.secrets,
    var.wake_lead_seconds,
    var.manifests,
  ]
}

run "wrong_values_3" {
  command = plan
  variables {
    timeout_seconds = 10
    vpc             = { connector = "main", network = "main" } # vpc network alone
    environment     = { MYSQL_PWD = "geheim" }                 # another password as a variable
    secrets         = { HOOK = "shop-hook:1" }                 # secret with its version
  }
  expect_failures = [
    var.timeout_seconds,
    var.vpc,
    var.environment,
    var.secrets,
  ]
}

run "wrong_values_4" {
  command = plan
  variables {
    no_tick_minutes = 1
    environment     = { OTHER = "postgres://jobs:ge heim@db.example.org/app" } # url as a variable
  }
  expect_failures = [
    var.no_tick_minutes,
    var.environment,
  ]
}

run "wrong_values_5" {
  command = plan
  variables {
    overdue_minutes = 0
  }
  expect_failures = [
    var.overdue_minutes,
  ]
}

run "wrong_values_6" {
  command = plan
  variables {
    workers = { tick = {} } # worker of the ticks queue
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_7" {
  command = plan
  variables {
    workers = { Reports = {} } # worker of a queue in capitals
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_8" {
  command = plan
  variables {
    workers = { a-queue-that-leaves-no-room-for-the-name-of-all = {} } # worker with a long name
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_9" {
  command = plan
  variables {
    workers = { reports = { timeout_seconds = 3600 } } # worker for an hour
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_10" {
  command = plan
  variables {
    workers = { reports = { memory_mb = 256 } } # worker with little memory
  }
  expect_failures = [
    var.workers,
  ]
}

run "wrong_values_11" {
  command = plan
  variables {
    workers = { reports = { schedule = "* * * * * *" } } # worker by the second
  }
  expect_failures = [
    var.workers,
  ]
}

run "alerts_that_would_come_and_go" {
  command = plan
  variables {
    schedule = "*/20 * * * *"
  }
  expect_failures = [var.no_tick_minutes, var.overdue_minutes, var.queued_minutes]
}

# A service answers when a pass ends: between two answers lie a whole pass and the time between two ticks.
run "an_alert_during_a_long_pass" {
  command = plan
  variables {
    timeout_seconds = 1800
    no_tick_minutes = 31
  }
  expect_failures = [var.no_tick_minutes]
}

run "alerts_between_two_hours" {
  command = plan
  variables {
    schedule        = "0 7,13,19 * * *"
    no_tick_minutes = 720
    overdue_minutes = 719
    queued_minutes  = 720
  }
  expect_failures = [var.no_tick_minutes, var.overdue_minutes]
}

# The night is a pause, and the two hours between ticks are none.
run "alerts_between_steps_in_a_range" {
  command = plan
  variables {
    schedule        = "0-59/20 8-18/2 * * *"
    no_tick_minutes = 80
    overdue_minutes = 80
    queued_minutes  = 79
  }
  expect_failures = [var.no_tick_minutes, var.queued_minutes]
}

# The alert for missing ticks would look back for longer than Cloud Monitoring does.
run "a_safety_trigger_of_a_day" {
  command = plan
  variables {
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    schedule   = "30 4 * * *"
  }
  expect_failures = [var.no_tick_minutes]
}

run "alarms_for_a_service" {
  command = plan
  variables {
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    trigger    = "service"
  }
  expect_failures = [var.trigger]
}

run "worker_that_keeps_the_database_awake" {
  command = plan
  variables {
    workers    = { reports = {} }
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
  }
  expect_failures = [var.workers]
}

# What the budget of a tick leaves would end before the alarm's instant, and each tick would be refused.
run "lead_longer_than_the_budget" {
  command = plan
  variables {
    wake_queue        = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    timeout_seconds   = 20
    wake_lead_seconds = 9
  }
  expect_failures = [var.wake_lead_seconds]
}
