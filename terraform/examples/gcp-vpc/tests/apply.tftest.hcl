# The whole example, with made-up answers of Google.

mock_provider "google" {
  # The number of a version: the module refuses what is none. An invented text would be refused, too.
  mock_resource "google_secret_manager_secret_version" {
    defaults = { version = "7" }
  }
  mock_data "google_sql_database_instance" {
    defaults = {
      region             = "europe-west3"
      connection_name    = "acme-prod:europe-west3:main"
      database_version   = "POSTGRES_17"
      private_ip_address = "10.1.2.3"
      public_ip_address  = ""
      settings = [{
        ip_configuration = [{ private_network = "projects/acme-prod/global/networks/main" }]
      }]
    }
  }
}

variables {
  project           = "acme-prod"
  database_instance = "main"
  database          = "app"
  subnetwork        = "jobs"
  password          = "geheim geheim geheim"
}

run "builds_the_image" {
  command = plan # apply would build it

  assert {
    condition     = local.image == "europe-west3-docker.pkg.dev/acme-prod/dbjobs/dbjobs:1" && terraform_data.image[0].triggers_replace == [local.image] && google_artifact_registry_repository.this[0].location == "europe-west3"
    error_message = "the image goes elsewhere: ${local.image}"
  }
  assert {
    condition     = contains(keys(google_project_service.this), "artifactregistry.googleapis.com")
    error_message = "the repository cannot be made"
  }
}

run "applies" {
  variables {
    image = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  }

  assert {
    condition     = output.run == "gcloud run jobs execute dbjobs --project acme-prod --region europe-west3 --wait --args"
    error_message = "the command is another: ${output.run}"
  }
  assert {
    condition     = length(terraform_data.image) == 0 && length(google_artifact_registry_repository.this) == 0
    error_message = "an image is built that nobody needs"
  }
  assert {
    condition     = tostring(google_sql_user.dbjobs.password_wo_version) == "1" && tostring(google_secret_manager_secret_version.database_url.secret_data_wo_version) == "1" # a number before 7.0
    error_message = "the login and the secret have passwords of different versions"
  }
  assert {
    condition     = google_sql_user.dbjobs.name != "dbjobs" # on its search path would be the schema, so that a job's DELETE FROM jobs means our table
    error_message = "the login has the name of the schema"
  }
  assert {
    condition     = google_sql_user.dbjobs.instance == "main" && google_sql_user.dbjobs.password == null
    error_message = "the login is of another instance, or its password is in the state"
  }
}

run "short_password" {
  command = plan

  variables {
    password = "geheim"
  }

  expect_failures = [var.password]
}

run "mysql" {
  command = plan

  override_data {
    target = data.google_sql_database_instance.this
    values = {
      region             = "europe-west3"
      connection_name    = "acme-prod:europe-west3:main"
      database_version   = "MYSQL_8_4"
      private_ip_address = "10.1.2.3"
      public_ip_address  = ""
      settings           = [{ ip_configuration = [{ private_network = "main" }] }]
    }
  }

  expect_failures = [data.google_sql_database_instance.this]
}

run "public_address" {
  command = plan

  override_data {
    target = data.google_sql_database_instance.this
    values = {
      region             = "europe-west3"
      connection_name    = "acme-prod:europe-west3:main"
      database_version   = "POSTGRES_17"
      private_ip_address = "10.1.2.3"
      public_ip_address  = "192.0.2.1"
      settings           = [{ ip_configuration = [{ private_network = "main" }] }]
    }
  }

  expect_failures = [data.google_sql_database_instance.this]
}
