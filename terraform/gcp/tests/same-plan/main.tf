# Calls the module with names of secrets that are not known before apply.

resource "terraform_data" "secret" {}

module "database_alone" {
  source = "../.."

  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  database_secret = terraform_data.secret.id
}

module "with_secrets" {
  source = "../.."

  project         = "acme-prod"
  region          = "europe-west3"
  image           = "europe-west3-docker.pkg.dev/acme-prod/tools/dbjobs:1"
  name            = "mails"
  database_secret = terraform_data.secret.id
  secrets         = { HOOK = terraform_data.secret.id }
}
