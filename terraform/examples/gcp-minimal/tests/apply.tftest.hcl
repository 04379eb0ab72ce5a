# The whole example, with made-up answers of Google.

mock_provider "google" {
  # The number of a version: the module refuses what is none. An invented text would be refused, too.
  mock_resource "google_secret_manager_secret_version" {
    defaults = { version = "7" }
  }
}

variables {
  project      = "acme-prod"
  region       = "europe-west3"
  image        = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_url = "postgres://jobs:geheim@db.example.org/app"
}

run "applies" {
  assert {
    condition     = output.try == "gcloud run jobs execute dbjobs --project acme-prod --region europe-west3 --wait"
    error_message = "the command to try is another: ${output.try}"
  }
  assert {
    condition     = tostring(google_secret_manager_secret_version.database_url.secret_data_wo_version) == "1" # a number before 7.0
    error_message = "the URL is not written as the version that was told"
  }
}
