package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// published has the requests of the services' own references, in the form of their examples: method and target, host,
// the headers that they name, and the body.
var published = map[string]string{
	"sqs": `POST / sqs.eu-central-1.amazonaws.com
X-Amz-Target: AmazonSQS.SendMessage
Content-Type: application/x-amz-json-1.0
Authorization: sqs
{"QueueUrl": "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs.fifo", "MessageBody": "{\"run\": \"019a-7\", \"from\": \"\", \"to\": \"\"}", "MessageGroupId": "rollup", "MessageDeduplicationId": "019a-7"}`,
	"sns": `GET /?Action=Publish&Version=2010-03-31&TopicArn=arn:aws:sns:eu-central-1:123456789012:nights&Message=rollup%20began%20019a-7 sns.eu-central-1.amazonaws.com
Authorization: sns
`,
	"eventbridge": `POST / events.eu-central-1.amazonaws.com
X-Amz-Target: AWSEvents.PutEvents
Content-Type: application/x-amz-json-1.1
Authorization: events
{"Entries": [{"Source": "dbjobs", "DetailType": "due", "Detail": "{\"job\": \"rollup\", \"run\": \"019a-7\", \"at\": \"2026-11-20T02:30:00.000000Z\"}", "EventBusName": "default"}]}`,
	"stepfunctions": `POST / states.eu-central-1.amazonaws.com
X-Amz-Target: AWSStepFunctions.StartExecution
Content-Type: application/x-amz-json-1.0
Authorization: states
{"stateMachineArn": "arn:aws:states:eu-central-1:123456789012:stateMachine:nightly", "name": "019a-7", "input": "{\"from\": \"\", \"to\": \"\"}"}`,
	"lambda": `POST /2015-03-31/functions/report/invocations lambda.eu-central-1.amazonaws.com
X-Amz-Invocation-Type: Event
Authorization: lambda
{"args":{},"attempt":1,"fence":3,"interval_end":null,"interval_start":null,"job":"rollup","owner":"ann","run_id":"019a-7","scheduled_for":"2026-11-20T02:30:00.000000Z"}`,
	"ecs": `POST / ecs.eu-central-1.amazonaws.com
X-Amz-Target: AmazonEC2ContainerServiceV20141113.RunTask
Content-Type: application/x-amz-json-1.1
Authorization: ecs
{"cluster": "jobs", "taskDefinition": "rollup", "launchType": "FARGATE", "clientToken": "019a-7", "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-0a1b2c3d"]}},
 "overrides": {"containerOverrides": [{"name": "main", "environment": [{"name": "RUN_ID", "value": "019a-7"}]}]}}`,
	"pubsub": `POST /v1/projects/example/topics/jobs:publish pubsub.googleapis.com
Authorization: access
{"messages": [{"attributes": {"job": "rollup", "run": "019a-7", "at": "2026-11-20T02:30:00.000000Z"}}]}`,
	"cloudtasks": `POST /v2/projects/example/locations/europe-west3/queues/jobs/tasks cloudtasks.googleapis.com
Authorization: access
{"task": {"name": "projects/example/locations/europe-west3/queues/jobs/tasks/019a-7", "httpRequest": {"httpMethod": "POST", "url": "https://worker.example.org/run/019a-7"}}}`,
	"cloudrun": `POST /v2/projects/example/locations/europe-west3/jobs/rollup:run run.googleapis.com
Authorization: access
{"overrides": {"containerOverrides": [{"env": [{"name": "RUN_ID", "value": "019a-7"}]}]}}`,
	"service": `POST /due worker-abc123-ey.a.run.app
Authorization: https://worker-abc123-ey.a.run.app
{"args":{},"attempt":1,"fence":3,"interval_end":null,"interval_start":null,"job":"rollup","owner":"ann","run_id":"019a-7","scheduled_for":"2026-11-20T02:30:00.000000Z"}`,
}

// recipes returns the http steps of the page with recipes, by their jobs. scripts/queues tests the others.
func recipes(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]json.RawMessage{}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		var file struct {
			Jobs map[string]struct{ HTTP map[string]any }
		}
		if err := yaml.Unmarshal([]byte(block), &file); err != nil {
			t.Fatal(err)
		}
		for name, job := range file.Jobs {
			if job.HTTP == nil {
				continue
			}
			if one, is := job.HTTP["expect"].(int); is {
				job.HTTP["expect"] = []any{one}
			}
			var expect []string
			for _, e := range asList(job.HTTP["expect"]) {
				expect = append(expect, fmt.Sprint(e))
			}
			job.HTTP["expect"] = expect
			auth := job.HTTP["auth"].(map[string]any)
			if service, is := auth["aws"].(string); is {
				auth["aws"] = map[string]any{"service": service}
			}
			if token, is := auth["gcp"].(string); is {
				auth["gcp"] = map[string]any{"token": token}
			}
			b, err := json.Marshal(map[string]any{"http": job.HTTP})
			if err != nil {
				t.Fatal(err)
			}
			var given map[string]json.RawMessage
			_ = json.Unmarshal(b, &given)
			all[name] = given["http"]
		}
	}
	return all
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// TestRecipes: each recipe sends the request that the service documents.
func TestRecipes(t *testing.T) {
	server, _ := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			_, _ = w.Write([]byte(`{"access_token":"access"}`))
			return
		}
		_, _ = w.Write([]byte(r.URL.Query().Get("audience")))
	})
	env := map[string]string{"GCE_METADATA_HOST": server.Listener.Addr().String()}
	for name, v := range credentials {
		env[name] = v
	}
	list := recipes(t)
	for name := range list {
		if published[name] == "" {
			t.Errorf("%s: no request is known", name)
		}
	}
	for name, want := range published {
		x, got := cloud(t, &Host{Clouds: []Cloud{{Name: "aws"}, {Name: "gcp"}}}, env)
		r := attempt(string(list[name]))
		r.Task.Run.Args = "{}"
		if _, err := x.Execute(t.Context(), r); err != nil && !strings.Contains(err.Error(), "204 No Content") || len(got()) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sent := got()[0]
		wantHead, wantBody, _ := strings.Cut(want, "\n{")
		lines := strings.Split(strings.TrimSpace(wantHead), "\n")
		if head := sent.method + " " + sent.uri + " " + sent.host; head != lines[0] {
			t.Errorf("%s: sent %s, want %s", name, head, lines[0])
		}
		for _, line := range lines[1:] {
			key, value, _ := strings.Cut(line, ": ")
			has := sent.header.Get(key)
			if key == "Authorization" {
				has = strings.TrimPrefix(has, "Bearer ")
				if slices.Contains([]string{"sqs", "sns", "events", "states", "lambda", "ecs"}, value) {
					value = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261120/eu-central-1/" + value + "/aws4_request"
					has, _, _ = strings.Cut(has, ",")
				}
			}
			if has != value {
				t.Errorf("%s: %s is %q, want %q", name, key, has, value)
			}
		}
		if wantBody != "" {
			wantBody = "{" + wantBody
		}
		if a, b := compact(t, sent.body), compact(t, wantBody); a != b {
			t.Errorf("%s: sent\n%s\nwant\n%s", name, a, b)
		}
	}
}

// compact returns JSON in one fixed form.
func compact(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var v any
	dec := json.NewDecoder(bytes.NewBufferString(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
