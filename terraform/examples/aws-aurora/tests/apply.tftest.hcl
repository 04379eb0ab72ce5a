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
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:111122223333:rule/dbjobs" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:111122223333:dbjobs-alarms" }
  }
  mock_resource "aws_rds_cluster" {
    defaults = {
      id                    = "dbjobs"
      endpoint              = "dbjobs.cluster-abc.eu-central-1.rds.amazonaws.com"
      engine_version_actual = "17.5"
      master_user_secret = [{
        kms_key_id    = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
        secret_arn    = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!cluster-0a1b2c3d-AbC123"
        secret_status = "active"
      }]
    }
  }
  override_data {
    target = data.aws_subnet.this
    values = { cidr_block = "10.9.0.0/24" }
  }
}

variables {
  region                      = "eu-central-1"
  zip                         = "../../aws/tests/function.zip"
  vpc_id                      = "vpc-0123456789abcdef0"
  subnet_ids                  = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
  secrets_extension_layer_arn = "arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11"
  alarm_email                 = "ops@example.org"
}

run "applies" {
  assert {
    condition     = aws_rds_cluster.this.serverlessv2_scaling_configuration[0].min_capacity == 0 && aws_rds_cluster.this.serverlessv2_scaling_configuration[0].seconds_until_auto_pause == 300 && aws_rds_cluster_instance.this.instance_class == "db.serverless"
    error_message = "the database never sleeps"
  }
  assert {
    condition     = toset([for e in aws_vpc_endpoint.this : e.service_name]) == toset(["com.amazonaws.eu-central-1.secretsmanager", "com.amazonaws.eu-central-1.scheduler"]) && aws_vpc_security_group_ingress_rule.endpoint.from_port == 443
    error_message = "the function does not reach its secret, or sets no alarms"
  }
  assert {
    condition     = module.dbjobs.security_group_id == aws_vpc_security_group_ingress_rule.endpoint.referenced_security_group_id && module.dbjobs.security_group_id == aws_vpc_security_group_ingress_rule.database.referenced_security_group_id
    error_message = "endpoints or database let somebody else in"
  }
}

run "login_of_its_own" {
  variables {
    database_secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:jobs-AbC123"
  }

  assert {
    condition     = output.try == "aws lambda invoke --region eu-central-1 --function-name dbjobs:live /dev/stdout"
    error_message = "the command to try is another: ${output.try}"
  }
}
