output "function_name" {
  description = "Name of the function: `aws lambda invoke --function-name NAME:live /dev/stdout` runs a pass."
  value       = aws_lambda_function.this.function_name
}

output "function_arn" {
  description = "ARN of the function."
  value       = aws_lambda_function.this.arn
}

output "alias_arn" {
  description = "ARN of the alias that the trigger starts."
  value       = aws_lambda_alias.live.arn
}

output "version" {
  description = "Version behind the alias, which is the identity of a start for jobs with on_startup."
  value       = aws_lambda_function.this.version
}

output "role_arn" {
  description = "ARN of the function's role, for policies of a database or a key."
  value       = aws_iam_role.function.arn
}

output "role_name" {
  description = "Name of the function's role, to attach more rights to, such as those of jobs."
  value       = aws_iam_role.function.name
}

output "security_group_id" {
  description = "Security group of the function, to let in elsewhere; null without a VPC."
  value       = one(aws_security_group.function[*].id)
}

output "log_group_name" {
  description = "Log group: `aws logs tail NAME --follow`."
  value       = aws_cloudwatch_log_group.this.name
}

output "dead_letter_queue_url" {
  description = "URL of the queue with the starts that came to nothing."
  value       = aws_sqs_queue.dead_letters.url
}

output "trigger_arn" {
  description = "ARN of the rule or of the schedule."
  value       = one(concat(aws_cloudwatch_event_rule.tick[*].arn, aws_scheduler_schedule.tick[*].arn))
}

output "worker_function_names" {
  description = "Names of the workers' functions, by their queues."
  value       = { for queue, worker in aws_lambda_function.worker : queue => worker.function_name }
}

output "alarm_arns" {
  description = "ARNs of the alarms, by their names, such as errors, no-tick and failing."
  value       = { for name, alarm in aws_cloudwatch_metric_alarm.this : name => alarm.arn }
}
