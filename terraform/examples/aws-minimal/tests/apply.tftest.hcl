# The whole example, with made-up answers of AWS.

mock_provider "aws" {
  mock_resource "aws_secretsmanager_secret" {
    defaults = { arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:dbjobs-database-url-20261101-AbC123" }
  }
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
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:111122223333:rule/dbjobs-tick" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/dbjobs-function" }
  }
}

variables {
  region                      = "eu-central-1"
  zip                         = "../../aws/tests/function.zip"
  database_url                = "postgres://jobs:geheim@db.example.org/app"
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
}

run "applies" {
  assert {
    condition     = output.try == "aws lambda invoke --region eu-central-1 --function-name dbjobs:live /dev/stdout"
    error_message = "the command to try is another: ${output.try}"
  }
  assert {
    condition     = aws_secretsmanager_secret_version.database_url.secret_string == null && aws_secretsmanager_secret_version.database_url.secret_string_wo_version == 1
    error_message = "the URL is in the state"
  }
}
