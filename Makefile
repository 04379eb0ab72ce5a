# Run `make` alone to see the targets. Only Go, git and make are needed, and a C compiler for the race detector.

GO       ?= go
FUZZTIME ?= 20s
BENCH    ?=
JOBS     ?= 2000
PEERS    ?= pgcron
PACKAGES ?= ./...
BUILD    ?= .build

# The architecture of the function, arm64 or amd64, and files that are put beside it in /var/task, such as a
# bundle of certificates.
LAMBDA_ARCH  ?= arm64
LAMBDA_FILES ?=
IMAGE_ARCH   ?= amd64
PUSH         ?=

# Go has cgo, and so the race detector, if it finds a C compiler. The detector does not watch the part of SQLite
# that is C translated to Go: there it costs eight times the time and sees nothing of ours. Packages with generic
# types have to be watched, because the linker would use their unwatched copies everywhere.
ifeq ($(shell $(GO) env CGO_ENABLED),1)
#
# The detector also does not watch the loops of a login to PostgreSQL, which take 50 ms each time when they are
# watched.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false \
	$(foreach p,pbkdf2 hmac sha256,-gcflags=crypto/internal/fips140/$p=-race=false)
else
NOTE := -note "the race detector was OFF: there is no C compiler here"
endif

DBJOBS_TEST_DATABASES ?= sqlite,postgres,mariadb
export DBJOBS_TEST_DATABASES

# Without the paths of this machine, what another clone has compiled or linted is used again: for the linters alone,
# this saves a minute of CPU.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath

SERVERS = .build/testservers
SUITE   = .build/suite

# Programs that tests start in addition to the servers.
TOOLS = pgbouncer,exim,chromium,at,psql,mariadb-client,sqlite3

# Tests are short and there is memory: collecting garbage less often saves up to a fifth of their time. The
# program itself sets the same value, so it runs as it does elsewhere.
test test-pooled test-mysql-part short prove imports queues: export GOGC ?= 400

# go test, but the failures come together at the end, with a count, and each package is named as it ends. Without
# the tables for debuggers, linking a test's program takes a third less time. Stack traces do not need these
# tables.
TOLD = $(GO) tool -modfile=$(CURDIR)/scripts/test/go.mod gotestsum --hide-summary=skipped
LINK = -ldflags='-s -w'
TEST = $(TOLD) --format pkgname -- $(LINK)

# Tests in several legs at the same time, by programs that stay linked: see scripts/suite.
LEGS = $(TOLD) --format pkgname --raw-command -- $(SUITE)

.PHONY: help
help:
	@sed -n 's/^\([a-z.-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-15s %s\n' "$$name" "$$text"; done

.PHONY: build
build: ## the program, static, as .build/dbjobs
	$(RELEASE) -o "$(BUILD)/dbjobs" ./cmd/dbjobs

# How a release is built: static, and with the same bytes from the same commit and tag. Go writes the version into
# the program. The version is the tag, or is made from the earlier tags, and `dbjobs version` prints it.
RELEASE = CGO_ENABLED=0 $(GO) build -trimpath -tags lambda.norpc -ldflags '-s -w'

.PHONY: lambda.zip
lambda.zip: $(LAMBDA_FILES) ## the program as an AWS Lambda function for LAMBDA_ARCH (arm64), as .build/lambda.zip
	GOOS=linux GOARCH=$(LAMBDA_ARCH) $(RELEASE) -o "$(BUILD)/lambda/bootstrap" ./cmd/dbjobs
	@$(GO) run ./scripts/notices -o "$(BUILD)/lambda/LICENSES" "$(BUILD)/lambda/bootstrap"
	@$(GO) run ./scripts/lambdazip -o "$(BUILD)/lambda.zip" "$(BUILD)/lambda/bootstrap" "$(BUILD)/lambda/LICENSES" $(LAMBDA_FILES)

# The certificates of RDS, for LAMBDA_FILES, because no system has them. This needs curl.
$(BUILD)/global-bundle.pem:
	@mkdir -p "$(BUILD)"
	curl -sSf -o "$@.part" https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem
	@mv "$@.part" "$@"

.PHONY: image
image: ## the program as a container image for IMAGE_ARCH (amd64), as .build/image.tar; PUSH=HOST/PATH:TAG sends it
	GOOS=linux GOARCH=$(IMAGE_ARCH) $(RELEASE) -o "$(BUILD)/image/dbjobs" ./cmd/dbjobs
	@$(GO) run ./scripts/notices -o "$(BUILD)/image/LICENSES" "$(BUILD)/image/dbjobs"
	@out="$$(cd "$(BUILD)" && pwd)" && \
		$(GO) run -C scripts/image . -o "$$out/image.tar" $(if $(PUSH),-push "$(PUSH)") "$(IMAGE_ARCH)=$$out/image"

# VERSION is for a source without git. TARGETS=linux/amd64 builds only a part, and DEB=gzip makes larger packages
# faster.
VERSION ?=
DEB     ?= xz
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64

.PHONY: release
release: ## what is released, into .build/release: archives, packages, functions, image, SBOM, checksums
	@mkdir -p "$(BUILD)" && out="$$(cd "$(BUILD)" && pwd)/release" && \
		$(GO) run -C scripts/release . -root "$(CURDIR)" -o "$$out" -version '$(VERSION)' -targets '$(TARGETS)' -deb '$(DEB)'

.PHONY: demo
demo: ## the main job on an embedded database: no server, nothing left behind
	@echo "compiling dbjobs: a minute or two the first time, seconds after that ..."
	@$(MAKE) --no-print-directory demo-programs
	@scripts/demo "$(BUILD)"

.PHONY: demo-programs
demo-programs: build
	@$(RELEASE) -o "$(BUILD)/rows" ./scripts/rows

# The race detector costs four times the time. It watches the store and the pass on one server that can decide two
# batches in parallel, which SQLite cannot. Left out are tests that go through cases or edits, one pass after the
# other, tests of the store and of hiding secrets that do one thing at a time, and two tests that measure something
# that the detector slows down. Tests that take, end, report, cancel, stop, lock or back off in parallel with others
# stay. In make prove, the detector watches all tests.
CASES = ^Test(ADay|After|AlarmsUnder|Answers|AQuery|Arguments|Backoff|Calendar(Skips|Edited|Missing|ThatTakes)|Check|Clock|Crowd|Deleted|Edit|Encoding|EqualSeeds|Error|Fact|ForEnds|GroupCapsSeveral|GroupServes|GroupThat|Hook|HideL|HostileRows|Login|Missed|NUL|OutputIsKept|Overlap|ParkedFor|PassIsNotKept|PassLeaves|PassReports|PassesKeep|PauseAfter|PauseEnds|PauseHolds|PauseOf(Each|ATag|AnyTag|OneS|What)|Prune|QueueOrder|QueueReports|Remove|Repeat|Request|Retry(After|By|Finds|Is|Keeps|Of|Until|Waits)|Rights|Session(Fails|Refuses|Says|Takes)|SettingsOfOthers|SkippedTimes|SkipsOf|SpareIsAsNew|SQLTells|Start|States|StepFact|Steps|Target(File|NotAllowed)|Unreadable|Views|AJobIs|AlarmForWhat|AlarmThat|AnOwner|AtomicStays|AtomicStepThat(EndsIts|MeetsBusy)|Backfill(Behind|Makes|Of|Says|$$)|BudgetToo|BudgetUsed|CalendarO|CalendarWhose|CancelOfAWaiting|ComingFrom|Delivery(AgainWhen|Once|Ends|GoesOn)|ForCounts|ForGoes|ForRests|ForServes|FullDisk|GroupIsServed|HeartbeatAfter|HeartbeatOfARun|LockedCalendar|PassRunsWhatFollows|PauseOfAll|PauseResumed|QueuesAreP|QueuesOf|ScheduleAltered|Silence|SkipsBegin|SkipsStay|SQLServer(Fails|Refuses)|TargetOut|TimeoutOfARun|AProgramKnows|AJobBegins|ApplyIs|ASearchPath|Certificates|Differences|DryRun|Duration|EveryTable|MySQLOptions|NoFunction|NothingHostile|PlanInput|Policies|ResultHides|RunsThat|SecureTransport|ServiceOf|SQLiteFiles|Statements|TablesCan|TheSchema|Uninstall|UnixSockets|ManyRenames|MigratorsName|ApplySees|ACalendarOf|AClock|AGroup|AJob(Of|Rem|Wi)|ALink|ANewer|AParked|APassEnds|ATick|ATime|AllOf|AlarmsFall|BacklogIn|Count|Delivery(LostIn|That|With)|Elapsed|ForAnHour(Cou|Is|Keeps|Rai|Tells)|Forecasts|Idemp|JitterE|LeaseOutlives|LineIs|LocksJust|MaxRuns|NextOf|NextRun|NothingIsLate|Older|Pass(Counts|For|JustA|ThatC)|PausedJobs|PlacesAre|Rename|Replan|ReportN|RowSec|RunsFollow|SettingsOfTheDepth|SkipNext|SkipsHave|Standing|StepWhose|StepThat|Target$$|Trouble|WhatAnother)

comma := ,
WITH_POSTGRES = $(findstring postgres,$(DBJOBS_TEST_DATABASES))

# All legs use the same servers. The real pg_cron and pgAgent are among them, for the imports from other
# schedulers.
.PHONY: test
test: $(SERVERS) $(SUITE) ## the whole suite on SQLite, PostgreSQL and MariaDB, which it starts itself; 6 to 16 minutes on two cores
	@if [ -n "$$DBJOBS_REQUIRE_RACE" ] && [ -z "$(RACE)" ]; then \
		echo "DBJOBS_REQUIRE_RACE is set, but there is no C compiler for the race detector: apt-get install gcc libc6-dev" >&2; exit 1; fi
	@DBJOBS_TEST_DATABASES=$(DBJOBS_TEST_DATABASES)$(if $(WITH_POSTGRES),$(comma)pgcron) $(SERVERS) -exit-at-once \
		-tools systemd,$(TOOLS)$(if $(WITH_POSTGRES),$(comma)pgagent$(comma)pgbouncer-stable) $(NOTE) -- \
		env DBJOBS_TEST_DATABASES=$(DBJOBS_TEST_DATABASES) $(LEGS) $(MAIN) $(RACED) $(MODULES) $(if $(WITH_POSTGRES),$(POOLED) $(QUEUES))
	$(if $(WITH_POSTGRES),@$(NODE_QUEUES))

LIMITS  = -test.parallel=4 -test.timeout=45m
MAIN    = '$(if $(WITH_POSTGRES),DBJOBS_REQUIRE_IMPORTS=1); ; $(LIMITS); ./...'
RACED   = 'race GORACE=atexit_sleep_ms=0 DBJOBS_TEST_DATABASES=$(if $(WITH_POSTGRES),postgres,sqlite); $(RACE); $(LIMITS) -test.skip=$(CASES); ./store/... ./tick ./cmd/internal/settings'
MODULES = $(foreach module,triggers dialects release,'; -C scripts/$(module); $(LIMITS); ./...')
QUEUES  = '; -C scripts/queues; $(LIMITS); ./...'

# Every database behind a pooler of transactions with two sessions, over TLS. This runs the tests of the store,
# and those tests of the pass that concern what a step does in a session: half a minute of CPU, with that of the
# server. Left out are tests that ask PostgreSQL itself, or use its socket, and tests that give the URL a setting
# that a pooler refuses (Harm). Other tests need a session of their own, which no pooler of transactions gives:
# something that TestSessionOfAJobHarmsNobody leaves in a session, such as a lock, is found by other tests, and
# they wait for it. What a text sets after its COMMIT may reach another session than what it sends next, and that
# then waits without a bound (AfterItsCommit).
POOLED = 'pooled DBJOBS_TEST_DATABASES=pgbouncer; ; $(LIMITS) -test.skip=SearchPath|UnixSockets; ./store' \
	'pooled DBJOBS_TEST_DATABASES=pgbouncer; ; $(LIMITS) -test.skip=Harm|AfterItsCommit -test.run=^Test(TimeoutStops|TimeoutOfARunEnds|CancelReaches|Arguments|Atomic|StepFact|Told|SQLTells|OutputIs|DeliveryGoes); ./tick'

.PHONY: test-pooled
test-pooled: $(SERVERS) $(SUITE) ## the store, and what steps do, behind PgBouncer; a part of make test
	DBJOBS_TEST_DATABASES=postgres $(SERVERS) -tools pgbouncer-stable -- $(LEGS) $(POOLED)

# No release of Debian has MySQL, so MySQL and the libraries that it needs are newer than the rest, and come from
# elsewhere: see scripts/testservers.
.PHONY: test-mysql
test-mysql: $(SERVERS) ## the suite on MySQL, the newest that can be fetched; not a part of make test
	DBJOBS_TEST_DATABASES=mysql $(SERVERS) -tools $(TOOLS) -- $(TEST) -parallel 4 -count=1 -timeout 60m $(PACKAGES)
	DBJOBS_TEST_DATABASES=sqlite,postgres,mariadb,mysql $(SERVERS) -- $(TEST) -count=1 -timeout 5m -run '^TestOnePassOverSeveralDatabases$$' ./cmd/dbjobs
	@$(MAKE) --no-print-directory test-variants

# A part of that which takes about a minute, for .ci/run, and then a server with all settings that others use at
# the same time.
.PHONY: test-mysql-part
test-mysql-part: $(SERVERS) $(SUITE)
	DBJOBS_TEST_DATABASES=mysql $(SERVERS) -tools mariadb-client -- $(LEGS) '; ; $(LIMITS) -test.skip=SearchPath; ./store/...' \
		'; ; $(LIMITS) -test.run=^Test(AtomicStep|Arguments|FactsBy|SessionFails|SQLTells|RetryWaits|ParkedFor); ./tick' \
		'; ; $(LIMITS) -test.run=^Test(EightTicks|CrashAtEveryCall)$$; ./tick/crash'
	@$(MAKE) --no-print-directory test-variants VARIANTS='$(COMBINED)'

COMBINED = mysql --sql-mode=ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL --sql-require-primary-key=ON \
	--gtid-mode=ON --enforce-gtid-consistency=ON --lower-case-table-names=1

# Servers as other people set them up: an engine, and the arguments with which it is started. TestSettingsOfOthers
# tries the settings that a session can set, on any server.
define VARIANTS
mysql --sql-mode=
mysql --sql-mode=ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL
mysql --sql-require-primary-key=ON
mysql --sql-generate-invisible-primary-key=ON
mysql --gtid-mode=ON --enforce-gtid-consistency=ON
mysql --lower-case-table-names=1
mysql --transaction-isolation=SERIALIZABLE --innodb-rollback-on-timeout=ON --innodb-autoinc-lock-mode=0 --character-set-server=utf16
mariadb --sql-mode=
mariadb --sql-mode=ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL,ORACLE
mariadb --innodb-force-primary-key=ON
mariadb --gtid-strict-mode=ON --binlog-format=MIXED
mariadb --lower-case-table-names=1
mariadb --transaction-isolation=SERIALIZABLE --innodb-rollback-on-timeout=ON --innodb-autoinc-lock-mode=0 --character-set-server=utf16 --innodb-snapshot-isolation=ON
endef
export VARIANTS

# The first test makes the tables and alters them. The others go through all that the program does, with the
# rights of the README, in databases with their own collations, and in sessions with their own settings.
.PHONY: test-variants
test-variants: $(SERVERS) $(SUITE) ## a story on MySQL and MariaDB, on servers with other settings each; minutes
	@failed=0; printf '%s\n' "$$VARIANTS" | { while read -r engine args; do \
		env DBJOBS_TEST_DATABASES=$$engine "DBJOBS_TEST_$$(echo $$engine | tr a-z A-Z)_ARGS=$$args" $(SERVERS) -- \
			$(LEGS) '; ; $(LIMITS) -test.run=$(STORY); ./store ./tick' </dev/null || failed=1; done; exit $$failed; }

STORY = ^Test(Migrators|TablesCan|TheSchemaAs|ApplyIs|Uninstall|Encodings|SettingsOf|RightsOfTheReadme)

# The suite, without its long proofs, on the versions that make test does not have; make test-all also has those
# of make test. The table at the end is made from the events in .build/matrix. VERSIONS=postgres=12 runs one row,
# and SUITES=store,tick runs some of the suites. MATRIXFLAGS=-table runs nothing, and prints the table of earlier
# runs.
VERSIONS ?= postgres=12 postgres=16 postgres=17 postgres=18 mariadb=newest
SUITES   ?=
MATRIX    = .build/matrix.bin -servers $(SERVERS) -tools $(TOOLS) -suites '$(SUITES)' $(MATRIXFLAGS)

.PHONY: test-versions
test-versions: $(SERVERS) ## the suite on PostgreSQL 12, 16, 17, 18 and the newest MariaDB that can be fetched; half an hour
	@$(GO) build -o .build/matrix.bin ./scripts/matrix
	@$(MATRIX) $(VERSIONS)

.PHONY: test-all
test-all: $(SERVERS) ## the suite on every engine and version, with one table at its end; most of an hour on two cores
	@$(GO) build -o .build/matrix.bin ./scripts/matrix
	@$(MATRIX) sqlite postgres mariadb mysql $(VERSIONS)

# A test that ran before does not run again, unless a file that it reads has changed since. Eight tests of three
# packages run at once, since many of them only wait, and the packages that wait or take the longest begin. The
# linters include vet. Left out are the long proofs, and the tests that only ask a real pgAgent.
.PHONY: check
check: ## the linters, and beside them the tests on SQLite in their short form; run it while you work
	@$(MAKE) --no-print-directory --keep-going -j2 lint short

.PHONY: short
short:
	@DBJOBS_TEST_DATABASES=sqlite $(TEST) -short -vet=off -p 3 -parallel 8 -timeout 5m $(addprefix ./,tick/executor tick cmd/dbjobs store tick/simulate) $$($(GO) list ./... | grep -vE '/(tick/(crash|load)|pgagent)$$')

# npm fetches two of the queues, and Node, into the user's cache. They are the only things that testservers cannot get.
.PHONY: queues
queues: $(SERVERS) ## jobs are handed over to River, and to graphile-worker and pg-boss where there is npm; a part of make test
	cd scripts/queues && DBJOBS_TEST_DATABASES=postgres ../../$(SERVERS) -- $(TEST) -count=1 ./...
	@$(NODE_QUEUES)

NODE_QUEUES = cmp -s scripts/queues/package-lock.json .build/queues/fetched || \
	echo "NOT RUN: graphile-worker and pg-boss. There is no npm here, or npm could not fetch them" >&2

.PHONY: imports
imports: $(SERVERS) ## what other schedulers have is read from the real ones; a part of make test
	DBJOBS_REQUIRE_IMPORTS=1 DBJOBS_TEST_DATABASES=pgcron $(SERVERS) -- $(TEST) -count=1 -run '^TestReal' ./cmd/internal/intake/pgcron
	DBJOBS_REQUIRE_IMPORTS=1 DBJOBS_TEST_DATABASES=postgres $(SERVERS) -tools pgagent -- $(TEST) -count=1 -run '^TestReal' ./cmd/internal/intake/pgagent

# Each test is named as it ends, because some take hours; .build/prove*.json keeps the results so far. A failure
# stops nothing: the other tests go on, and so does the second half, in which the race detector watches all tests
# on every engine. In that half, the long forms are left out, because they would take days. What can be counted is
# tried whole; random searches go some minutes each, and DBJOBS_PROVE=10 makes those ten times as long: scripts/prove.
#
# A run that is cut goes on: a test of a minute or more that has passed does not run again, as long as the program of
# its tests, their testdata and the list of databases are the same. .build/proved has these results; without that
# file, all runs.
DBJOBS_PROVE ?= 1
PROVE  = $(TOLD) --format testname --jsonfile-timing-events .build/$1.json --raw-command -- $(SUITE) -keep .build/proved
PROVED = -test.timeout=48h; $(PACKAGES)'
ON     = DBJOBS_TEST_DATABASES=$(DBJOBS_TEST_DATABASES)

.PHONY: prove
prove: $(SERVERS) $(SUITE) ## the suite with its long forms, then with the race detector: many hours; PACKAGES=./tick a part
	@failed=0; \
	$(if $(filter ./...,$(PACKAGES)),DBJOBS_PROVE=$(DBJOBS_PROVE) $(MAKE) queues release || failed=1; \
		(cd scripts/release && DBJOBS_PROVE=$(DBJOBS_PROVE) $(TEST) -count=1 -timeout 1h ./...) || failed=1;) \
	$(SERVERS) -exit-at-once -tools $(TOOLS)$$([ $$(id -u) -ne 0 ] || echo ,cron) -- $(call PROVE,prove) 'DBJOBS_PROVE=$(DBJOBS_PROVE) $(ON); ; $(PROVED) || failed=1; \
	$(if $(RACE),env -u DBJOBS_PROVE $(SERVERS) -exit-at-once -tools $(TOOLS) -- $(call PROVE,prove-race) 'race GORACE=atexit_sleep_ms=0 $(ON); $(RACE); -test.parallel=4 $(PROVED),echo "NOT RUN: the race detector needs a C compiler" >&2) || failed=1; \
	exit $$failed

# The linters include vet.
.PHONY: cron
cron: build $(SERVERS) ## a real cron starts real ticks for three minutes; as root
	DBJOBS_TEST_DATABASES=sqlite,postgres $(SERVERS) -tools cron -- $(GO) test $(LINK) -vet=off -count=1 -run '^TestCron$$' -v -timeout 20m ./cmd/dbjobs

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (20s)
	@GO="$(GO)" scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: build $(SERVERS) ## beside its peers, as ratios: all tables, or BENCH=noop,due; JOBS=2000 due (scripts/bench/doc.go)
	@$(GO) build -C scripts/bench -o "$(CURDIR)/.build/bench" .
	DBJOBS_TEST_DATABASES='$(DBJOBS_TEST_DATABASES),$(PEERS)' $(SERVERS) -- .build/bench -program "$(BUILD)/dbjobs" -cache .build/peers -only '$(BENCH)' -jobs $(JOBS) $(BENCHFLAGS)

.PHONY: lint
lint: ## formatting, vet, staticcheck and the other linters of .golangci.yml
	@unformatted="$$(gofmt -l .)" && if [ -n "$$unformatted" ]; then \
		echo "not formatted, run gofmt -w:" >&2; echo "$$unformatted" >&2; exit 1; fi
	$(GO) vet -C scripts/image ./...
	$(GO) vet -C scripts/release ./...
	$(GO) vet -C scripts/bench ./...
	$(GO) vet -C scripts/queues ./...
	$(GO) vet -C scripts/dialects ./...
	$(GO) tool -modfile=scripts/lint/go.mod golangci-lint run

.PHONY: terraform-check
terraform-check: ## the Terraform modules, by the checker TERRAFORM_CHECK, or with the real providers (=terraform)
	@scripts/terraform-check terraform/aws terraform/gcp terraform/examples/*

.PHONY: servers
servers: $(SERVERS) ## start the databases, print their URLs, keep them until Ctrl-C
	@exec $(SERVERS) -print -tools $(TOOLS)

.PHONY: clean
clean: ## remove what was built (what was fetched stays in the user's cache)
	rm -rf .build

# Go knows better than make whether these programs are up to date.
.PHONY: $(SERVERS) $(SUITE)
$(SERVERS):
	@$(GO) build -o $@ ./scripts/testservers
$(SUITE):
	@$(GO) build -o $@ ./scripts/suite
