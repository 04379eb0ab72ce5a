# The whole example, with made-up answers of AWS.

mock_provider "aws" {
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs", version = "1" }
  }
  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:dbjobs:live" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:111122223333:dbjobs-dead-letters", url = "https://sqs.example/dbjobs-dead-letters" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/lambda/dbjobs" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/dbjobs-function" }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-0123456789abcdef2" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:111122223333:dbjobs-alarms" }
  }
  mock_data "aws_db_instance" {
    defaults = {
      endpoint            = "main.abc.eu-central-1.rds.amazonaws.com:5432"
      port                = 5432
      db_name             = "app"
      vpc_security_groups = ["sg-0123456789abcdef0"]
      master_user_secret = [{
        kms_key_id    = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
        secret_arn    = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-0a1b2c3d-AbC123"
        secret_status = "active"
      }]
    }
  }
}

variables {
  region                      = "eu-central-1"
  zip                         = "../../aws/tests/function.zip"
  vpc_id                      = "vpc-0123456789abcdef0"
  subnet_ids                  = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
  database_identifier         = "main"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
  alarm_email                 = "ops@example.org"
}

run "applies" {
  assert {
    condition     = aws_vpc_endpoint.secrets.service_name == "com.amazonaws.eu-central-1.secretsmanager" && aws_vpc_endpoint.secrets.private_dns_enabled && aws_vpc_security_group_ingress_rule.endpoint.from_port == 443
    error_message = "the function does not reach its secret"
  }
  assert {
    condition     = module.dbjobs.security_group_id == aws_vpc_security_group_ingress_rule.endpoint.referenced_security_group_id
    error_message = "the endpoint lets somebody else in"
  }
}

run "several_security_groups" {
  override_data {
    target = data.aws_db_instance.this
    values = {
      endpoint            = "main.abc.eu-central-1.rds.amazonaws.com:5432"
      port                = 5432
      db_name             = "app"
      vpc_security_groups = ["sg-0123456789abcdef1", "sg-0123456789abcdef0"]
      master_user_secret  = []
    }
  }

  variables {
    database_secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:jobs-AbC123"
  }

  assert {
    condition     = local.database_security_group_id == "sg-0123456789abcdef0"
    error_message = "of the database's security groups, the function is let in by ${local.database_security_group_id}"
  }
  assert {
    condition     = local.secret.arn == "arn:aws:secretsmanager:eu-central-1:111122223333:secret:jobs-AbC123" && local.secret.kms_key == null
    error_message = "ticks log in as the master user all the same"
  }
}

run "one_of_them" {
  variables {
    database_security_group_id = "sg-0123456789abcdef9"
  }

  assert {
    condition     = local.database_security_group_id == "sg-0123456789abcdef9"
    error_message = "the function is let in by another group"
  }
}
