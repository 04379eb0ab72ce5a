variable "project" {
  description = "Id of the project."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project: want a project's id (not its name or number)."
  }
}

variable "region" {
  description = "Region of the Cloud Run job, best the database's."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region: want a region such as europe-west3."
  }
}

variable "scheduler_region" {
  description = "Region of the Cloud Scheduler job; null is region. Not every region has Cloud Scheduler."
  type        = string
  default     = null

  validation {
    condition     = var.scheduler_region == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.scheduler_region))
    error_message = "scheduler_region: want a region such as europe-west3."
  }
}

variable "name" {
  description = "Name of the job, of what belongs to it, and of the trigger in the ledger (DBJOBS_NAME)."
  type        = string
  default     = "dbjobs"

  validation {
    # The longest name made from it is a service account's, of 30 characters.
    condition     = can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", var.name))
    error_message = "name: want a small letter, then at most 19 small letters, digits and hyphens, and no hyphen at the end."
  }
}

variable "image" {
  description = "Container image, by tag or better by digest. It is the identity of a start: jobs with on_startup run once for each image."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9.:-]+/[a-zA-Z0-9._/-]+(:[a-zA-Z0-9._-]+)?(@sha256:[0-9a-f]{64})?$", var.image))
    error_message = "image: want HOST/PATH:TAG or HOST/PATH@sha256:DIGEST."
  }
}

variable "database_secret" {
  description = "Secret Manager secret that holds the database's URL: its name, or projects/PROJECT/secrets/NAME."
  type        = string

  validation {
    condition     = can(regex("^(projects/[a-z0-9:.-]+/secrets/)?[a-zA-Z0-9_-]{1,255}$", var.database_secret))
    error_message = "database_secret: want a secret's name, or projects/PROJECT/secrets/NAME; the version is database_secret_version."
  }
}

variable "database_secret_version" {
  description = "Version of the secret: latest, or a number."
  type        = string
  default     = "latest"

  validation {
    condition     = can(regex("^(latest|[1-9][0-9]*)$", var.database_secret_version))
    error_message = "database_secret_version: want latest or a number."
  }
}

variable "secrets" {
  description = "Secrets of jobs, by the names that steps use: for each, the Secret Manager secret whose latest version is the value, as its name or projects/PROJECT/secrets/NAME. The account of the passes gets the right to read them."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, secret in var.secrets : can(regex("^[a-zA-Z0-9_]{1,100}$", name)) && can(regex("^(projects/[a-z0-9:.-]+/secrets/)?[a-zA-Z0-9_-]{1,255}$", secret))])
    error_message = "secrets: want names of letters, digits and underscores, for each a secret's name, or projects/PROJECT/secrets/NAME."
  }
}

variable "trigger" {
  description = "What Cloud Scheduler starts: service, which is billed for the time of each request, or job, billed for a minute at least, for passes of more than half an hour. Null is service, or with wake_queue job."
  type        = string
  default     = null

  validation {
    condition     = var.trigger == null || try(contains(["service", "job"], var.trigger), false)
    error_message = "trigger: want service or job."
  }

  validation {
    condition     = !(try(var.trigger == "service", false) && var.wake_queue != null)
    error_message = "trigger: alarms of wake_queue start the job, and not the service; set trigger to job, or leave it out."
  }
}

variable "manifests" {
  description = "Objects of Cloud Storage that the job may apply as manifests (--args apply,-f,gs://…), as gs://BUCKET/KEY, or gs://BUCKET/PREFIX/ for all beneath it. Its account gets the right to read them, for which the bucket needs uniform access."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for url in var.manifests : can(regex("^gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]/[^*?$, \"\\\\]*$", url))])
    error_message = "manifests: want gs://BUCKET/KEY or gs://BUCKET/PREFIX/ each, without wildcards, commas, blanks and quotes."
  }
}

variable "environment" {
  description = "More variables of the program, such as DBJOBS_CONCURRENCY or DBJOBS_INSTANCE. DBJOBS_GRACE is 3s if it is not set here."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setintersection(keys(var.environment), ["DBJOBS_DATABASE_URL", "DBJOBS_NAME", "DBJOBS_BUDGET", "DBJOBS_STARTUP_ID", "DBJOBS_MANIFESTS", "DBJOBS_WAKE", "DBJOBS_WAKE_LEAD", "DBJOBS_WAKE_NAME", "DBJOBS_WAKE_TARGET", "DBJOBS_WAKE_ROLE", "DBJOBS_REQUEST_TIMEOUT", "DBJOBS_OIDC_AUDIENCE", "DBJOBS_OIDC_CALLER"])) == 0
    error_message = "environment: sets what the module sets from database_secret, name, timeout_seconds, image, manifests or wake_queue."
  }

  validation {
    condition     = alltrue([for name, value in var.environment : !can(regex("(?i)(password|passwd|_pwd$|secret|token|api_?key)", name)) && !can(regex("://[^@/\\s\"]*:[^@\\n\"]*@", value))])
    error_message = "environment: holds a password or another secret, which would be in Terraform's state and in the job's settings for all to read; put it into a secret of Secret Manager, and name that in secrets for a job, or in database_secret for the database's URL."
  }
}

variable "wake_queue" {
  description = "Cloud Tasks queue, as projects/PROJECT/locations/LOCATION/queues/NAME, in which passes set alarms for what is due next, so that no tick comes each minute and the database may sleep; the trigger then is the safety trigger. Null sets none."
  type        = string
  default     = null

  validation {
    condition     = var.wake_queue == null || can(regex("^projects/[a-z0-9:.-]+/locations/[a-z0-9-]+/queues/[a-zA-Z0-9-]{1,100}$", var.wake_queue))
    error_message = "wake_queue: want projects/PROJECT/locations/LOCATION/queues/NAME."
  }
}

variable "wake_lead_seconds" {
  description = "With wake_queue, how much earlier alarms ring: for the start of the container, and a database that has to wake. The pass waits meanwhile."
  type        = number
  default     = 0

  validation {
    condition     = var.wake_lead_seconds >= 0 && var.wake_lead_seconds <= var.timeout_seconds / 2 && floor(var.wake_lead_seconds) == var.wake_lead_seconds
    error_message = "wake_lead_seconds: want a whole number of at most half of timeout_seconds."
  }

  validation {
    # A tick refuses a lead that is longer than what it waits for at most: its budget without up to 2.5 seconds for its end.
    condition     = var.wake_lead_seconds == 0 || var.wake_lead_seconds + local.margin_seconds + 3 <= var.timeout_seconds
    error_message = "wake_lead_seconds: each tick would be refused, since it ends before what it waits for; want at most timeout_seconds - ${local.margin_seconds + 3}."
  }
}

variable "schedule" {
  description = "How often a tick is started, as five cron fields. A job never runs more often, unless wake_queue is set. Null is each minute, or with wake_queue each hour."
  type        = string
  default     = null

  validation {
    condition     = var.schedule == null || can(regex("^([0-9*,/-]+ +){2}[0-9*,/-]+ +[0-9a-zA-Z*,/-]+ +[0-9a-zA-Z*,/-]+$", var.schedule))
    error_message = "schedule: want five cron fields (minute hour day month weekday), such as * * * * *."
  }
}

variable "time_zone" {
  description = "Time zone of schedule. It has nothing to do with those of the jobs."
  type        = string
  default     = "Etc/UTC"

  validation {
    condition     = can(regex("^[A-Za-z_]+(/[A-Za-z0-9_+-]+)*$", var.time_zone))
    error_message = "time_zone: want a name of the tz database, such as Europe/Berlin."
  }
}

variable "enabled" {
  description = "Whether the trigger, and with wake_queue the alarms of passes, start ticks. False stops the ticks, keeps everything, and takes the alert for missing ticks away."
  type        = bool
  default     = true
}

variable "timeout_seconds" {
  description = "Longest time of one pass. What is cut goes on in a later pass, but a single step has to fit in."
  type        = number
  default     = 300

  validation {
    condition     = var.timeout_seconds >= 20 && var.timeout_seconds <= 86400 && floor(var.timeout_seconds) == var.timeout_seconds
    error_message = "timeout_seconds: want a whole number of 20 to 86400, a day."
  }

  validation {
    condition     = !local.is_service || var.timeout_seconds <= 1800
    error_message = "timeout_seconds: Cloud Scheduler waits half an hour for a service; want at most 1800, or trigger = \"job\"."
  }
}

variable "cpu" {
  description = "Processors of a pass."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, 2, 4, 6, 8], var.cpu)
    error_message = "cpu: want 1, 2, 4, 6 or 8."
  }
}

variable "memory_mb" {
  description = "Memory of a pass. 512 is the least that Cloud Run gives; a pass needs some 30."
  type        = number
  default     = 512

  validation {
    condition     = var.memory_mb >= 512 && var.memory_mb <= 32768 && floor(var.memory_mb) == var.memory_mb
    error_message = "memory_mb: want a whole number of 512 to 32768."
  }
}

variable "workers" {
  description = "Queues that ticks leave to workers, each with timeout_seconds (900), cpu (1), memory_mb (512) and schedule (* * * * *) of a service that takes its runs."
  type = map(object({
    timeout_seconds = optional(number, 900)
    cpu             = optional(number, 1)
    memory_mb       = optional(number, 512)
    schedule        = optional(string)
  }))
  default = {}

  validation {
    # The service, and its scheduler job, are named after both. The scheduler job of the ticks has the name that a queue tick would have.
    condition     = alltrue([for queue in keys(var.workers) : can(regex("^[a-z0-9-]*[a-z0-9]$", queue)) && length("${var.name}-${queue}") <= 49 && queue != "tick"])
    error_message = "workers: want queues of lower-case letters, digits and hyphens, at most 49 characters together with name and a hyphen; the queue tick is served by ticks."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : w.timeout_seconds >= 20 && w.timeout_seconds <= 1800 && floor(w.timeout_seconds) == w.timeout_seconds])
    error_message = "workers: timeout_seconds: want a whole number of 20 to 1800, as long as Cloud Scheduler waits."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : contains([1, 2, 4, 6, 8], w.cpu) && w.memory_mb >= 512 && w.memory_mb <= 32768 && floor(w.memory_mb) == w.memory_mb])
    error_message = "workers: want a cpu of 1, 2, 4, 6 or 8, and as memory_mb a whole number of 512 to 32768."
  }

  validation {
    condition     = alltrue([for w in values(var.workers) : w.schedule == null || can(regex("^([0-9*,/-]+ +){2}[0-9*,/-]+ +[0-9a-zA-Z*,/-]+ +[0-9a-zA-Z*,/-]+$", w.schedule))])
    error_message = "workers: schedule: want five cron fields (minute hour day month weekday), such as * * * * *."
  }

  validation {
    condition     = var.wake_queue == null || alltrue([for w in values(var.workers) : w.schedule != null])
    error_message = "workers: with wake_queue, each worker needs a schedule: no alarm is set for workers, and each of their passes wakes the database."
  }
}

variable "vpc" {
  description = "How a private address is reached: a Serverless VPC Access connector, or a network and subnetwork directly. Null if not needed."
  type = object({
    connector  = optional(string)
    network    = optional(string)
    subnetwork = optional(string)
  })
  default = null

  validation {
    condition     = var.vpc == null || try((var.vpc.connector != null) != (var.vpc.subnetwork != null), false)
    error_message = "vpc: want either connector, or subnetwork (and its network, unless it is the project's default)."
  }

  validation {
    condition     = var.vpc == null || try(var.vpc.network == null || var.vpc.subnetwork != null, false)
    error_message = "vpc: network belongs with subnetwork."
  }
}

variable "cloud_sql_instances" {
  description = "Cloud SQL instances, as PROJECT:REGION:INSTANCE, to reach by the unix socket /cloudsql/PROJECT:REGION:INSTANCE."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.cloud_sql_instances : can(regex("^[a-z][a-z0-9-]+:[a-z0-9-]+:[a-z][a-z0-9-]*$", name))])
    error_message = "cloud_sql_instances: want PROJECT:REGION:INSTANCE each, the connection name."
  }
}

variable "notification_channels" {
  description = "Monitoring channels that get a message, as projects/PROJECT/notificationChannels/ID. Without any, incidents are only displayed."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for channel in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[^/]+$", channel))])
    error_message = "notification_channels: want projects/PROJECT/notificationChannels/ID each."
  }
}

variable "no_tick_minutes" {
  description = "Alert if no pass succeeded for this number of minutes, which has to be longer than the time between two ticks, and for a service longer than that and timeout_seconds, because it answers when a pass ends; with wake_queue, it is that and 15 at least; 0 makes no such alert, for a trigger that pauses at night."
  type        = number
  default     = 10

  validation {
    condition     = var.no_tick_minutes == 0 || var.no_tick_minutes >= 2 && var.no_tick_minutes <= 1410 && floor(var.no_tick_minutes) == var.no_tick_minutes
    error_message = "no_tick_minutes: want a whole number of 2 to 1410, 23.5 hours, or 0 for no alert."
  }

  validation {
    condition     = var.no_tick_minutes == 0 || var.no_tick_minutes > local.success_minutes || var.wake_queue != null
    error_message = "no_tick_minutes: schedule ticks every ${local.tick_minutes} minutes${local.is_service ? ", and a service answers when its pass ends, after timeout_seconds at most" : ""}, so the alert would come and go; want ${local.success_minutes < 1410 ? "more than ${local.success_minutes}, or " : ""}0 for no alert."
  }

  validation {
    # Cloud Monitoring looks back for 23.5 hours at most.
    condition     = var.no_tick_minutes == 0 || var.wake_queue == null || local.tick_minutes + 15 <= 1410
    error_message = "no_tick_minutes: with wake_queue, the alert looks back for ${local.tick_minutes + 15} minutes, and Cloud Monitoring for 1410 at most; want a schedule of at most 23 hours, or 0 for no alert."
  }
}

variable "overdue_minutes" {
  description = "Alert if, when a pass begins, something has been due for longer than this number of minutes."
  type        = number
  default     = 15

  validation {
    condition     = var.overdue_minutes >= 1 && floor(var.overdue_minutes) == var.overdue_minutes
    error_message = "overdue_minutes: want a whole number of at least 1."
  }

  validation {
    condition     = var.overdue_minutes >= local.tick_minutes || var.wake_queue != null
    error_message = "overdue_minutes: schedule ticks every ${local.tick_minutes} minutes, for which a job waits anyway; want at least that."
  }
}

variable "queued_minutes" {
  description = "Alert if, when a pass ends, a run in any queue has been ready for longer than this number of minutes."
  type        = number
  default     = 15

  validation {
    condition     = var.queued_minutes >= 1 && floor(var.queued_minutes) == var.queued_minutes
    error_message = "queued_minutes: want a whole number of at least 1."
  }

  validation {
    condition     = var.queued_minutes >= local.tick_minutes || var.wake_queue != null
    error_message = "queued_minutes: schedule ticks every ${local.tick_minutes} minutes, for which a run waits anyway; want at least that."
  }
}

variable "paused_alert" {
  description = "Whether there is an alert for paused jobs."
  type        = bool
  default     = false
}

variable "enable_apis" {
  description = "Whether to enable the APIs that this needs. They stay enabled when this is removed."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Labels of everything that has labels."
  type        = map(string)
  default     = {}
}
