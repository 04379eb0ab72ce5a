variable "name" {
  description = "Name of the function, of what belongs to it, and of the trigger in the ledger (DBJOBS_NAME)."
  type        = string
  default     = "dbjobs"

  validation {
    # The longest name made from it is an IAM role's, of 64 characters.
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{0,39}$", var.name))
    error_message = "name: want a letter, then at most 39 letters, digits and hyphens."
  }
}

variable "zip" {
  description = "Path of the function's zip file; null is what `make lambda.zip` makes in this clone."
  type        = string
  default     = null
}

variable "architecture" {
  description = "Instruction set that the zip file was built for: arm64 or x86_64 (`make lambda.zip LAMBDA_ARCH=amd64`)."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture: want arm64 or x86_64."
  }
}

variable "database_secret_arn" {
  description = "ARN of the Secrets Manager secret with the database's URL, or with the JSON that RDS keeps there. Null only with rds_iam_user_arns."
  type        = string
  default     = null

  validation {
    condition     = var.database_secret_arn == null || can(regex("^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[^*?]+-[a-zA-Z0-9]{6}$", var.database_secret_arn))
    error_message = "database_secret_arn: want the whole ARN of one secret, with the six characters that Secrets Manager put at its end."
  }

  validation {
    condition     = (var.database_secret_arn == null) == (length(var.rds_iam_user_arns) > 0)
    error_message = "database_secret_arn: want either a secret's ARN, or rds_iam_user_arns, whose token replaces the password, and a database_url without one."
  }
}

variable "database_secret_kms_key_arn" {
  description = "ARN of the customer-managed KMS key that encrypts the secret; null if it is the account's aws/secretsmanager."
  type        = string
  default     = null

  validation {
    condition     = var.database_secret_kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$", var.database_secret_kms_key_arn))
    error_message = "database_secret_kms_key_arn: want the ARN of a key (an alias cannot be named in a policy)."
  }
}

variable "secrets_extension_layer_arn" {
  description = "ARN, with its version, of the layer AWS Parameters and Secrets Lambda Extension for the region and the architecture; AWS lists them. Needed with database_secret_arn and secret_arns, which it reads."
  type        = string
  default     = null

  validation {
    condition     = var.secrets_extension_layer_arn == null || can(regex("^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:layer:[a-zA-Z0-9-_]+:[0-9]+$", var.secrets_extension_layer_arn))
    error_message = "secrets_extension_layer_arn: want the ARN of a layer's version, such as arn:aws:lambda:eu-central-1:187925254637:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:11."
  }

  validation {
    condition     = var.secrets_extension_layer_arn != null || var.database_secret_arn == null && length(var.secret_arns) == 0
    error_message = "secrets_extension_layer_arn: is needed with database_secret_arn and secret_arns, which the layer reads."
  }

  validation {
    condition     = var.secrets_extension_layer_arn == null || can(regex("Arm64", var.secrets_extension_layer_arn)) == (var.architecture == "arm64") || !can(regex("AWS-Parameters-and-Secrets", var.secrets_extension_layer_arn))
    error_message = "secrets_extension_layer_arn: the layer is not for this architecture (its name ends with -Arm64 for arm64)."
  }
}

variable "secret_arns" {
  description = "ARNs of more Secrets Manager secrets that the function may read: those that the settings of the host (DBJOBS_CONFIG in environment) name by value_aws_secret or url_aws_secret, for jobs. A KMS key of your own needs kms:Decrypt, which you give to role_name."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.secret_arns : can(regex("^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[^*?]+-[a-zA-Z0-9]{6}$", arn))])
    error_message = "secret_arns: want the whole ARN of each secret, with the six characters that Secrets Manager put at its end."
  }
}

variable "database_url" {
  description = "URL of the database WITHOUT a password, for what the secret does not say: host, database, sslmode. Null if the secret says all."
  type        = string
  default     = null

  validation {
    condition     = var.database_url == null || can(regex("^(postgres|postgresql|mysql|mariadb)://", var.database_url))
    error_message = "database_url: want postgres://user@host/database or mysql://user@host/database."
  }

  validation {
    # User, hosts with their ports, path and options, none with an @ of its own: a password that is not escaped ends earlier.
    condition = var.database_url == null || can(regex(
      "^[a-z]+://([^:/?#@\\s]*@)?((\\[[0-9a-fA-F:.]+\\]|[^][:/?#@,\\s]*)(:[0-9]+)?,?)*(/[^?#@\\s]*)?(\\?[^#@\\s]*)?$",
    var.database_url)) && !can(regex("(?i)[?&](ssl)?(pass(word|wd)?|pwd|token|secret)=", var.database_url))
    error_message = "database_url: holds a password, or a character that has to be percent-encoded; a password would be in Terraform's state and in the function's settings for all to read; put it into the secret."
  }

  validation {
    condition     = var.database_url != null || length(var.rds_iam_user_arns) == 0
    error_message = "database_url: is needed with rds_iam_user_arns."
  }
}

variable "rds_iam_user_arns" {
  description = "Database users, as arn:aws:rds-db:REGION:ACCOUNT:dbuser:RESOURCE-ID/USER, to log in as with an IAM token instead of a password."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.rds_iam_user_arns : can(regex("^arn:aws[a-z-]*:rds-db:[a-z0-9-]+:[0-9]{12}:dbuser:[a-zA-Z0-9-]+/[^*?]+$", arn))])
    error_message = "rds_iam_user_arns: want arn:aws:rds-db:REGION:ACCOUNT:dbuser:RESOURCE-ID/USER each, without wildcards."
  }
}

variable "permissions_boundary_arn" {
  description = "ARN of the policy that bounds each role made here, for accounts that allow no role without one. It has to leave what the role's own policy says."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[^*?]+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn: want the ARN of a policy."
  }
}

variable "allow" {
  description = "What the function does beside ticks and workers' passes for each caller: migrate, apply, export, status, check, run-now. With apply, that is any SQL that its login may do."
  type        = list(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.allow, ["migrate", "apply", "export", "status", "check", "run-now"])) == 0
    error_message = "allow: want some of migrate, apply, export, status, check and run-now."
  }
}

variable "manifests" {
  description = "Which objects of S3 the event apply may read a manifest from, as s3://BUCKET/KEY, or s3://BUCKET/PREFIX/ for all beneath it. The function gets s3:GetObject on them; in private subnets, it needs a gateway endpoint of S3."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for url in var.manifests : can(regex("^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^*?$, ]*$", url))])
    error_message = "manifests: want s3://BUCKET/KEY or s3://BUCKET/PREFIX/ each, without wildcards, commas and blanks."
  }

  validation {
    condition     = length(var.manifests) == 0 || contains(var.allow, "apply")
    error_message = "manifests: are read by the event apply, which allow does not have."
  }
}

variable "environment" {
  description = "More variables of the function, such as DBJOBS_CONCURRENCY or DBJOBS_INSTANCE."
  type        = map(string)
  default     = {}

  validation {
    condition = length(setintersection(keys(var.environment), [
      "DBJOBS_DATABASE_URL", "DBJOBS_DATABASE_SECRET_ARN", "DBJOBS_DATABASE_AUTH", "DBJOBS_MARGIN", "DBJOBS_NAME", "DBJOBS_METRICS", "DBJOBS_LAMBDA_ALLOW", "DBJOBS_MANIFESTS",
      "DBJOBS_WAKE", "DBJOBS_WAKE_LEAD", "DBJOBS_WAKE_NAME", "DBJOBS_WAKE_TARGET", "DBJOBS_WAKE_ROLE", "DBJOBS_WAKE_DEAD_LETTERS",
    ])) == 0
    error_message = "environment: sets what a variable of the module sets (database_url, database_secret_arn, rds_iam_user_arns, margin_seconds, name, allow, manifests, wake), or DBJOBS_METRICS, which metrics sets."
  }

  validation {
    condition     = alltrue([for name in keys(var.environment) : can(regex("^[a-zA-Z][a-zA-Z0-9_]+$", name)) && !startswith(name, "AWS_") && !startswith(name, "LAMBDA_")])
    error_message = "environment: names want a letter, then letters, digits and underscores, and not to begin with AWS_ or LAMBDA_."
  }

  validation {
    condition     = alltrue([for name, value in var.environment : (can(regex("^(PARAMETERS_SECRETS_EXTENSION_|SECRETS_MANAGER_(TTL|TIMEOUT_MILLIS)$)", name)) || !can(regex("(?i)(password|passwd|_pwd$|secret|token|api_?key)", name))) && !can(regex("://[^@/\\s\"]*:[^@\\n\"]*@", value))])
    error_message = "environment: holds a password or another secret, which would be in Terraform's state and in the function's settings for all to read; put it into a secret of Secrets Manager: for a job one that DBJOBS_CONFIG names by value_aws_secret, and secret_arns too, for the database's login that of database_secret_arn."
  }
}

variable "trigger" {
  description = "What starts a tick: rule (an EventBridge rule) or scheduler (EventBridge Scheduler, which knows time zones)."
  type        = string
  default     = "rule"

  validation {
    condition     = contains(["rule", "scheduler"], var.trigger)
    error_message = "trigger: want rule or scheduler."
  }
}

variable "wake" {
  description = "Whether passes set alarms for what is due next, by EventBridge Scheduler, so that no tick comes each minute and the database may sleep. The trigger then is the safety trigger."
  type        = bool
  default     = false
}

variable "wake_lead_seconds" {
  description = "With wake, how much earlier alarms ring: 60 starts jobs on time, since EventBridge Scheduler is up to a minute late, and gives a database time to wake. The function waits meanwhile."
  type        = number
  default     = 0

  validation {
    condition     = var.wake_lead_seconds >= 0 && var.wake_lead_seconds <= var.timeout_seconds / 2 && floor(var.wake_lead_seconds) == var.wake_lead_seconds
    error_message = "wake_lead_seconds: want a whole number of at most half of timeout_seconds."
  }

  validation {
    # A tick refuses a lead that is longer than what it waits for at most: its budget without up to 2.5 seconds for its end.
    condition     = var.wake_lead_seconds == 0 || var.wake_lead_seconds + var.margin_seconds + 3 <= var.timeout_seconds
    error_message = "wake_lead_seconds: each tick would be refused, since it ends before what it waits for; want at most timeout_seconds - margin_seconds - 3."
  }
}

variable "schedule_expression" {
  description = "How often a tick is started: rate(1 minute), rate(N minutes|hours|days) or cron(six fields). A job never runs more often, unless wake is set. Null is rate(1 minute), or with wake rate(1 hour)."
  type        = string
  default     = null

  validation {
    condition = var.schedule_expression == null || can(regex("^rate\\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\\)$", var.schedule_expression)) || can(regex(
      "^cron\\([0-9*,/-]+ [0-9*,/-]+ ([0-9*,/LW-]+ [0-9A-Z*,/-]+ \\?|\\? [0-9A-Z*,/-]+ [0-9A-Z*,/#-]+) [0-9*,/-]+\\)$",
    var.schedule_expression))
    error_message = "schedule_expression: want rate(1 minute), rate(5 minutes) (the singular for 1 only), or cron(minute hour day-of-month month day-of-week year), where one of the two days is ?."
  }
}

variable "enabled" {
  description = "Whether the trigger, and with wake the alarms of passes, start ticks. False stops the ticks and keeps everything; the alarms for missing ticks then stay off."
  type        = bool
  default     = true
}

variable "timeout_seconds" {
  description = "Longest time of one pass. What is cut goes on in a later pass, but a single step has to fit in."
  type        = number
  default     = 60

  validation {
    condition     = var.timeout_seconds >= 5 && var.timeout_seconds <= 900 && floor(var.timeout_seconds) == var.timeout_seconds
    error_message = "timeout_seconds: want a whole number of 5 to 900."
  }
}

variable "margin_seconds" {
  description = "How long before timeout_seconds the pass ends by itself, since Lambda kills without a signal."
  type        = number
  default     = 3

  validation {
    condition     = var.margin_seconds >= 1 && var.margin_seconds <= var.timeout_seconds / 2 && floor(var.margin_seconds) == var.margin_seconds
    error_message = "margin_seconds: want a whole number of at least 1 and at most half of timeout_seconds."
  }
}

variable "memory_mb" {
  description = "Memory, and with it the share of a processor. A pass needs some 30 MB; with less than 256 it starts slower."
  type        = number
  default     = 256

  validation {
    condition     = var.memory_mb >= 128 && var.memory_mb <= 10240 && floor(var.memory_mb) == var.memory_mb
    error_message = "memory_mb: want a whole number of 128 to 10240."
  }
}

variable "reserved_concurrency" {
  description = "Passes at the same time at most; as many are also set aside for it. -1 sets no bound, for accounts whose quota leaves nothing to set aside."
  type        = number
  default     = 2

  validation {
    condition     = var.reserved_concurrency == -1 || var.reserved_concurrency >= 1 && floor(var.reserved_concurrency) == var.reserved_concurrency
    error_message = "reserved_concurrency: want a whole number of at least 1, or -1; to stop the ticks, set enabled = false."
  }
}

variable "workers" {
  description = "Queues that ticks leave to workers, each with timeout_seconds (300), memory_mb (256), reserved_concurrency (-1) and schedule_expression (rate(1 minute)) of a function that takes its runs."
  type = map(object({
    timeout_seconds      = optional(number, 300)
    memory_mb            = optional(number, 256)
    reserved_concurrency = optional(number, -1)
    schedule_expression  = optional(string)
  }))
  default = {}

  validation {
    # The function, and the rule, are named after both. The rule of the ticks has the name that a queue tick would have.
    condition     = alltrue([for queue in keys(var.workers) : can(regex("^[a-zA-Z0-9_-]+$", queue)) && length("${var.name}-${queue}") <= 64 && queue != "tick"])
    error_message = "workers: want queues of letters, digits, hyphens and underscores, at most 64 characters together with name and a hyphen; the queue tick is served by ticks."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : w.timeout_seconds >= 2 * var.margin_seconds && w.timeout_seconds >= 5 && w.timeout_seconds <= 900 && floor(w.timeout_seconds) == w.timeout_seconds])
    error_message = "workers: timeout_seconds: want a whole number of 5 to 900, and at least twice margin_seconds."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : w.memory_mb >= 128 && w.memory_mb <= 10240 && floor(w.memory_mb) == w.memory_mb])
    error_message = "workers: memory_mb: want a whole number of 128 to 10240."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : w.reserved_concurrency == -1 || w.reserved_concurrency >= 1 && floor(w.reserved_concurrency) == w.reserved_concurrency])
    error_message = "workers: reserved_concurrency: want a whole number of at least 1, or -1."
  }

  validation {
    condition = alltrue([for w in values(var.workers) : w.schedule_expression == null || can(regex("^rate\\((1 (minute|hour|day)|([2-9]|[1-9][0-9]+) (minutes|hours|days))\\)$", w.schedule_expression)) || can(regex(
      "^cron\\([0-9*,/-]+ [0-9*,/-]+ ([0-9*,/LW-]+ [0-9A-Z*,/-]+ \\?|\\? [0-9A-Z*,/-]+ [0-9A-Z*,/#-]+) [0-9*,/-]+\\)$",
    w.schedule_expression))])
    error_message = "workers: schedule_expression: want what the input schedule_expression takes, in UTC."
  }

  validation {
    condition     = !var.wake || alltrue([for w in values(var.workers) : w.schedule_expression != null])
    error_message = "workers: with wake, each worker needs a schedule_expression: no alarm is set for workers, and each of their passes wakes the database."
  }
}

variable "vpc" {
  description = "Where the database is reached: the VPC, subnets for the function, the database's port and security group (which gets a rule that lets the function in). Null if it is reached without a VPC."
  type = object({
    id                         = string
    subnet_ids                 = list(string)
    database_port              = optional(number, 5432)
    database_security_group_id = optional(string)
    database_cidr_blocks       = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.vpc == null || can(regex("^vpc-[0-9a-f]+$", var.vpc.id))
    error_message = "vpc.id: want the id of a VPC, such as vpc-0123456789abcdef0."
  }

  validation {
    condition     = var.vpc == null || try(length(var.vpc.subnet_ids) > 0 && alltrue([for id in var.vpc.subnet_ids : can(regex("^subnet-[0-9a-f]+$", id))]), false)
    error_message = "vpc.subnet_ids: want the id of at least one subnet; two in different zones keep ticking when a zone fails."
  }

  validation {
    condition     = var.vpc == null || try(var.vpc.database_port >= 1 && var.vpc.database_port <= 65535, false)
    error_message = "vpc.database_port: want 1 to 65535."
  }

  validation {
    condition     = var.vpc == null || try(var.vpc.database_security_group_id != null || length(var.vpc.database_cidr_blocks) > 0, false)
    error_message = "vpc: name the database by database_security_group_id or by database_cidr_blocks."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: CloudWatch knows 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 and 3653."
  }
}

variable "metrics" {
  description = "Whether the function's log lines carry metrics. CloudWatch bills each; without them there are no alarms but errors, throttles and no-tick, and no-tick counts starts, also failed ones."
  type        = bool
  default     = true
}

variable "alarm_actions" {
  description = "ARNs that get a message when an alarm goes off and when it is over, such as an SNS topic. Without any, alarms are only displayed."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.alarm_actions) <= 5 && alltrue([for arn in var.alarm_actions : can(regex("^arn:aws[a-z-]*:", arn))])
    error_message = "alarm_actions: want at most five ARNs."
  }
}

variable "no_tick_minutes" {
  description = "Alarm if no pass succeeded for this number of minutes, which has to be longer than the time between two ticks; with wake, it is that and 15 at least; 0 makes no such alarm, for a trigger that pauses at night."
  type        = number
  default     = 5

  validation {
    condition     = var.no_tick_minutes == 0 || var.no_tick_minutes >= 2 && var.no_tick_minutes <= 1440 && floor(var.no_tick_minutes) == var.no_tick_minutes
    error_message = "no_tick_minutes: want a whole number of 2 to 1440, a day, or 0 for no alarm."
  }

  validation {
    condition     = var.no_tick_minutes == 0 || var.no_tick_minutes > local.tick_minutes || var.wake
    error_message = "no_tick_minutes: schedule_expression ticks every ${local.tick_minutes} minutes, so the alarm would go on and off; want ${local.tick_minutes < 1440 ? "more than that, or " : ""}0 for no alarm."
  }

  validation {
    # CloudWatch looks back for a day at most.
    condition     = var.no_tick_minutes == 0 || !var.wake || local.tick_minutes + 15 <= 1440
    error_message = "no_tick_minutes: with wake, the alarm looks back for ${local.tick_minutes + 15} minutes, and CloudWatch for a day at most; want a schedule_expression of at most 23 hours, or 0 for no alarm."
  }
}

variable "overdue_minutes" {
  description = "Alarm if, when a pass begins, something has been due for longer than this number of minutes."
  type        = number
  default     = 15

  validation {
    condition     = var.overdue_minutes >= 1 && floor(var.overdue_minutes) == var.overdue_minutes
    error_message = "overdue_minutes: want a whole number of at least 1."
  }

  validation {
    condition     = var.overdue_minutes >= local.tick_minutes || var.wake
    error_message = "overdue_minutes: schedule_expression ticks every ${local.tick_minutes} minutes, for which a job waits anyway; want at least that."
  }
}

variable "queued_minutes" {
  description = "Alarm if, when a pass ends, a run in any queue has been ready for longer than this number of minutes."
  type        = number
  default     = 15

  validation {
    condition     = var.queued_minutes >= 1 && floor(var.queued_minutes) == var.queued_minutes
    error_message = "queued_minutes: want a whole number of at least 1."
  }

  validation {
    condition     = var.queued_minutes >= local.tick_minutes || var.wake
    error_message = "queued_minutes: schedule_expression ticks every ${local.tick_minutes} minutes, for which a run waits anyway; want at least that."
  }
}

variable "paused_alarm" {
  description = "Whether the alarm for paused jobs tells somebody. It is shown in any case."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that has tags."
  type        = map(string)
  default     = {}
}
