# What the module refuses, before anything is asked of Google.

mock_provider "google" {}

variables {
  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_secret = "dbjobs-database-url"
}

run "project_number" {
  command = plan
  variables {
    project = "123456789012"
  }
  expect_failures = [var.project]
}

run "zone_instead_of_a_region" {
  command = plan
  variables {
    region = "europe-west3-a"
  }
  expect_failures = [var.region]
}

run "scheduler_region" {
  command = plan
  variables {
    scheduler_region = "eu"
  }
  expect_failures = [var.scheduler_region]
}

run "long_name" {
  command = plan
  variables {
    name = "a-name-of-more-than-20"
  }
  expect_failures = [var.name]
}

run "name_in_capitals" {
  command = plan
  variables {
    name = "Dbjobs"
  }
  expect_failures = [var.name]
}

run "image_without_a_host" {
  command = plan
  variables {
    image = "dbjobs"
  }
  expect_failures = [var.image]
}

run "image_with_a_short_digest" {
  command = plan
  variables {
    image = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs@sha256:12"
  }
  expect_failures = [var.image]
}

run "secret_with_its_version" {
  command = plan
  variables {
    database_secret = "projects/acme-prod/secrets/url/versions/3"
  }
  expect_failures = [var.database_secret]
}

run "secret_version" {
  command = plan
  variables {
    database_secret_version = "newest"
  }
  expect_failures = [var.database_secret_version]
}

run "variable_that_is_set_elsewhere" {
  command = plan
  variables {
    environment = { DBJOBS_DATABASE_URL = "postgres://db.example.org/app" }
  }
  expect_failures = [var.environment]
}

run "schedule_of_six_fields" {
  command = plan
  variables {
    schedule = "0 * * * * *"
  }
  expect_failures = [var.schedule]
}

run "schedule_as_a_rate" {
  command = plan
  variables {
    schedule = "every 1 minutes"
  }
  expect_failures = [var.schedule]
}

run "time_zone" {
  command = plan
  variables {
    time_zone = "UTC+1"
  }
  expect_failures = [var.time_zone]
}

run "timeout" {
  command = plan
  variables {
    timeout_seconds = 10
  }
  expect_failures = [var.timeout_seconds]
}

run "cpu" {
  command = plan
  variables {
    cpu = 3
  }
  expect_failures = [var.cpu]
}

run "memory" {
  command = plan
  variables {
    memory_mb = 256
  }
  expect_failures = [var.memory_mb]
}

run "vpc_of_two_kinds" {
  command = plan
  variables {
    vpc = { connector = "main", subnetwork = "jobs" }
  }
  expect_failures = [var.vpc]
}

run "vpc_of_nothing" {
  command = plan
  variables {
    vpc = {}
  }
  expect_failures = [var.vpc]
}

run "vpc_network_alone" {
  command = plan
  variables {
    vpc = { connector = "main", network = "main" }
  }
  expect_failures = [var.vpc]
}

run "cloud_sql_instance" {
  command = plan
  variables {
    cloud_sql_instances = ["main"]
  }
  expect_failures = [var.cloud_sql_instances]
}

run "channel" {
  command = plan
  variables {
    notification_channels = ["ops@example.org"]
  }
  expect_failures = [var.notification_channels]
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

run "alerts_that_would_come_and_go" {
  command = plan
  variables {
    schedule = "*/20 * * * *"
  }
  expect_failures = [var.no_tick_minutes, var.overdue_minutes, var.queued_minutes]
}

run "wake_queue" {
  command = plan
  variables {
    wake_queue = "dbjobs"
  }
  expect_failures = [var.wake_queue]
}

run "wake_lead_seconds" {
  command = plan
  variables {
    wake_lead_seconds = 200
  }
  expect_failures = [var.wake_lead_seconds]
}

run "alarms_for_a_service" {
  command = plan
  variables {
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
    trigger    = "service"
  }
  expect_failures = [var.trigger]
}

run "worker_of_the_ticks_queue" {
  command = plan
  variables {
    workers = { tick = {} }
  }
  expect_failures = [var.workers]
}

run "worker_of_a_queue_in_capitals" {
  command = plan
  variables {
    workers = { Reports = {} }
  }
  expect_failures = [var.workers]
}

run "worker_with_a_long_name" {
  command = plan
  variables {
    workers = { a-queue-that-leaves-no-room-for-the-name-of-all = {} }
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

run "worker_with_little_memory" {
  command = plan
  variables {
    workers = { reports = { memory_mb = 256 } }
  }
  expect_failures = [var.workers]
}

run "worker_by_the_second" {
  command = plan
  variables {
    workers = { reports = { schedule = "* * * * * *" } }
  }
  expect_failures = [var.workers]
}

run "worker_that_keeps_the_database_awake" {
  command = plan
  variables {
    workers    = { reports = {} }
    wake_queue = "projects/acme-prod/locations/europe-west3/queues/dbjobs"
  }
  expect_failures = [var.workers]
}

run "manifests_with_a_quote" {
  command = plan
  variables {
    manifests = ["gs://acme-config/a\") || true || (\"/"]
  }
  expect_failures = [var.manifests]
}

run "manifests_of_another_store" {
  command = plan
  variables {
    manifests = ["s3://acme-config/jobs/"]
  }
  expect_failures = [var.manifests]
}
