package executor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/tick/executor/outcome"
)

// TestHTTPAnswersOfAWSThatRefuse: a service of AWS answers 200 also where a function that it has called failed, or where it took
// only a part of what it was sent. The answers are in the form of the services' own references.
func TestHTTPAnswersOfAWSThatRefuse(t *testing.T) {
	many := strings.Repeat(`{"SequenceNumber": "49543463076548007577105092703039560359975228518395012686", "ShardId": "shardId-000000000000"}, `, 150)
	for _, c := range []struct{ name, target, header, body, want string }{
		{"lambda, failed", "", "Unhandled", `{"errorMessage": "2026-11-20 Task timed out after 3.00 seconds"}`,
			"the answer is 200 OK, but X-Amz-Function-Error is Unhandled: {\"errorMessage\": \"2026-11-20 Task timed out"},
		{"lambda", "", "", `{"Failed": ["its own"], "FailedEntryCount": 1}`, ""},
		{"events, refused", "AWSEvents.PutEvents", "", `{"FailedEntryCount": 1, "Entries": [{"ErrorCode": "MalformedDetail"}]}`, "but FailedEntryCount is 1: {"},
		{"events", "AWSEvents.PutEvents", "", `{"FailedEntryCount": 0, "Entries": [{"EventId": "11710aed"}]}`, ""},
		{"sqs, one refused", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": true, "Code": "InvalidParameterValue"}]}`,
			`but Failed is [{"Id":"b","SenderFault":true,"Code":"InvalidParameterValue"}]`},
		{"sqs", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}], "Failed": [ ]}`, ""},
		{"sqs, none failed", "AmazonSQS.SendMessageBatch", "", `{"Successful": [{"Id": "a"}]}`, ""},
		{"ecs, no place", "AmazonEC2ContainerServiceV20141113.RunTask", "", `{"failures": [{"reason": "RESOURCE:MEMORY"}], "tasks": []}`, `but failures is [{"reason":"RESOURCE:MEMORY"}]`},
		{"ecs", "AmazonEC2ContainerServiceV20141113.RunTask", "", `{"failures": [], "tasks": [{"taskArn": "arn:aws:ecs:eu-central-1:123456789012:task/jobs/1"}]}`, ""},
		{"kinesis, one of many", "Kinesis_20131202.PutRecords", "", `{"EncryptionType": "KMS", "Records": [` + many + `{"ErrorCode": "InternalFailure"}], "FailedRecordCount": 1}`, "but FailedRecordCount is 1"},
		{"firehose, cut", "Firehose_20150804.PutRecordBatch", "", `{"Encrypted": false, "FailedPutCount": 2, "RequestResponses": [` + strings.Repeat(many, 8), "but FailedPutCount is 2"},
		{"dynamodb, a part", "DynamoDB_20120810.BatchWriteItem", "", `{"UnprocessedItems": {"Forum": [{"PutRequest": {}}]}}`, `but UnprocessedItems is {"Forum"`},
		{"dynamodb", "DynamoDB_20120810.BatchWriteItem", "", `{"UnprocessedItems": {}}`, ""},
		{"states, failed", "AWSStepFunctions.StartSyncExecution", "", `{"error": "States.TaskFailed", "status": "FAILED"}`, `but status is "FAILED"`},
		{"states", "AWSStepFunctions.StartSyncExecution", "", `{"output": "{}", "status": "SUCCEEDED"}`, ""},
		{"states, of another", "AWSStepFunctions.DescribeExecution", "", `{"status": "FAILED"}`, ""},
		{"s3, copy failed", "PUT", "", `<?xml version="1.0" encoding="UTF-8"?>` + "\n\n" + `<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message></Error>`, "but Error is InternalError: <?xml"},
		{"s3, one not deleted", "POST", "", `<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>`, "but Error is AccessDenied"},
		{"s3, selected", "POST", "", strings.Repeat("a row of an object\n", outcome.Most/16), ""},
		{"s3", "PUT", "", `<CopyObjectResult><ETag>"9b2cf535f27731c974343645a3985328"</ETag></CopyObjectResult>`, ""},
		{"s3, an object", "GET", "", `<Error><Code>InternalError</Code></Error>`, ""},
		{"dynamodb, a statement", "DynamoDB_20120810.BatchExecuteStatement", "", `{"Responses": [{"TableName": "Forum"}, {"Error": {"Code": "ConditionalCheckFailed"}}]}`, `but Responses is [{"TableName":"Forum"},{"Error":`},
		{"dynamodb, all statements", "DynamoDB_20120810.BatchExecuteStatement", "", `{"Responses": [{"TableName": "Forum"}, {}]}`, ""},
		{"es, one not indexed", "POST", "", `{"took": 3, "errors": true, "items": [{"index": {"status": 400}}]}`, "but errors is true"},
		{"es", "POST", "", `{"took": 3, "errors": false, "items": [{"index": {"status": 201}}]}`, ""},
		{"s3express, copy failed", "PUT", "", `<Error><Code>SlowDown</Code></Error>`, "but Error is SlowDown"},
		{"dynamodb, much", "DynamoDB_20120810.BatchWriteItem", "", `{"ConsumedCapacity": [], "UnprocessedItems": {"Forum": ["` + strings.Repeat("x", outcome.Most) + `"]}}`, "but UnprocessedItems is not empty"},
		{"dynamodb, much got", "DynamoDB_20120810.BatchGetItem", "", `{"Responses": {"Forum": ["` + strings.Repeat("x", outcome.Most) + `"]}, "UnprocessedKeys": {}}`, ""},
		{"dynamodb, much selected", "DynamoDB_20120810.BatchExecuteStatement", "", `{"Responses": [{"Item": {"S": "` + strings.Repeat("x", outcome.Most) + `"}}]}`, ""},
		{"dynamodb, null", "DynamoDB_20120810.BatchExecuteStatement", "", `{"Responses": [{"Error": null}]}`, ""},
		{"es, a document", "GET", "", `{"job": "nightly", "errors": true}`, ""},
		{"logs, too old", "Logs_20140328.PutLogEvents", "", `{"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 1}}`, "but rejectedLogEventsInfo is {"},
		{"s3, many deleted", "POST", "", `<DeleteResult>` + strings.Repeat(`<Deleted><Key>a/long/key/of/an/object/with/a/date/2026-11-29/part-00001.parquet</Key></Deleted>`, 999) +
			`<Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>`, "but Error is AccessDenied"},
		{"no JSON", "AmazonSQS.SendMessageBatch", "", `<Failed>`, ""},
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set("X-Amz-Function-Error", c.header)
			}
			_, _ = w.Write([]byte(c.body))
		})
		spec := `{"url": "https://x.eu-central-1.amazonaws.com/", "headers": {"X-Amz-Target": "` + c.target + `"}, "json": {}, "auth": {"aws": {"service": "x"}}}`
		if service, _, _ := strings.Cut(c.name, ","); strings.HasPrefix(service, "s3") || service == "es" { // the method is its operation
			spec = `{"url": "https://x.s3.eu-central-1.amazonaws.com/key", "method": "` + c.target + `", "auth": {"aws": {"service": "` + service + `"}}}`
		}
		res, err := x.Execute(t.Context(), attempt(spec))
		failure, told := errors.AsType[*Error](err)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		case err != nil && (!told || failure.Code != "200" || !strings.Contains(res.Output, "200 OK")):
			t.Errorf("%s: %+v, %s", c.name, failure, res.Output)
		}
	}
}

// TestHTTPAnswersOfAWSInXML: SQS and SNS answer 200 to a batch of which they took only a part, also by the query protocol, which
// has the operation in its form, or in the query.
func TestHTTPAnswersOfAWSInXML(t *testing.T) {
	const refused = `<Id>b</Id><Message></Message><SenderFault>true</SenderFault><Code>AWS.SimpleQueueService.InvalidParameterValue</Code>`
	for _, c := range []struct{ service, body, want string }{
		{"sqs", `<SendMessageBatchResponse><SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id></SendMessageBatchResultEntry>
			<BatchResultErrorEntry>` + refused + `</BatchResultErrorEntry></SendMessageBatchResult></SendMessageBatchResponse>`,
			"but BatchResultErrorEntry is AWS.SimpleQueueService.InvalidParameterValue"},
		{"sqs", `<SendMessageBatchResponse><SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id></SendMessageBatchResultEntry></SendMessageBatchResult></SendMessageBatchResponse>`, ""},
		{"sqs", `<ReceiveMessageResponse><Message><Body>&lt;BatchResultErrorEntry&gt;&lt;Code&gt;X&lt;/Code&gt;</Body></Message></ReceiveMessageResponse>`, ""},
		{"sns", `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Failed><member>` + refused + `</member></Failed>
			<Successful><member><Id>a</Id></member></Successful></PublishBatchResult></PublishBatchResponse>`, "but Failed is AWS.SimpleQueueService.InvalidParameterValue"},
		{"sns", `<PublishBatchResponse><PublishBatchResult><Failed/><Successful><member><Id>a</Id></member></Successful></PublishBatchResult></PublishBatchResponse>`, ""},
		{"sns", `<PublishResponse><PublishResult><MessageId>567910cd</MessageId></PublishResult></PublishResponse>`, ""},
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) })
		_, err := x.Execute(t.Context(), attempt(`{"url": "https://`+c.service+`.eu-central-1.amazonaws.com/", "headers": {"Content-Type": "application/x-www-form-urlencoded"},
			"body": "Action=Batch", "auth": {"aws": {"service": "`+c.service+`"}}}`))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q for %s", c.service, err, c.want, c.body)
		}
	}
}

// TestHTTPAnswersThatBreakOff: a server that dies while it answers has not done all that it was asked for, whatever its status was.
func TestHTTPAnswersThatBreakOff(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"a length":          {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none", "the answer is 200 OK, but it broke off: unexpected EOF: one"},
		"pieces":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", "but it broke off: unexpected EOF: one"},
		"after much":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n" + strings.Repeat("x", 0x4000) + "\r\n", "but it broke off: unexpected EOF"},
		"an unexpected one": {"HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\none", "the answer is 500 No, want 2xx: one"},
		"no answer":         {"", "the server has ended the request without an answer"},
		"to the end":        {"HTTP/1.0 200 OK\r\n\r\none", ""},
		"nothing":           {"HTTP/1.1 204 No Content\r\n\r\n", ""},
	} {
		s, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = conn.Write([]byte(c.answer))
				conn.Close()
			}
		})
		_, err := execute(t, loopback(nil), `{"url": "`+s.URL+`"}`)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestHTTPAnswersOfAWSThatBreakOff: as far as the body goes, it may say what was not done.
func TestHTTPAnswersOfAWSThatBreakOff(t *testing.T) {
	const unknown = "but the answer broke off before it said whether all was done"
	for _, c := range []struct{ service, method, target, body, want string }{
		{"s3", "PUT", "", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\n\n", unknown}, // a copy begins so, and goes on for minutes
		{"s3", "PUT", "", `<Error><Code>SlowDown</Code>`, "but Error is SlowDown"},
		{"s3", "GET", "", "a part of an object", "but it broke off: unexpected EOF"},
		{"states", "POST", "AWSStepFunctions.StartSyncExecution", `{"output": "{}", `, unknown},
		{"states", "POST", "AWSStepFunctions.StartExecution", `{"executionArn": `, "but it broke off"},
		{"events", "POST", "AWSEvents.PutEvents", `{"FailedEntryCount": 0, "Entries": [`, "but it broke off"},
		{"sqs", "POST", "AmazonSQS.SendMessageBatch", `{"Successful": [{"Id": "a"}], "Failed": [{"Id"`, "but Failed is not empty, and the answer broke off"},
		{"sns", "POST", "", `<PublishBatchResponse>`, unknown},
		{"sns", "POST", "", `<PublishResponse>`, "but it broke off"},
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(c.body))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		_, err := x.Execute(t.Context(), attempt(`{"url": "https://x.eu-central-1.amazonaws.com/", "method": "`+c.method+`", "headers": {"X-Amz-Target": "`+c.target+`"},
			"auth": {"aws": {"service": "`+c.service+`"}}}`))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s: %v, want %q", c.service, c.method, c.target, err, c.want)
		}
	}
}

// TestHTTPAnswersOfCloudsThatDoNotEnd: where the time of the attempt is over first, that is why it ends: nothing broke off.
func TestHTTPAnswersOfCloudsThatDoNotEnd(t *testing.T) {
	over := errors.New("its time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	// The server learns that we hang up before our side of the connection is closed, and ends its answer.
	dial := x.transports["ann"].DialContext
	x.transports["ann"].DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return slowToClose{conn}, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		time.AfterFunc(time.Second, func() { cancel(over) })
	}})
	_, err := x.Execute(ctx, attempt(`{"url": "https://x.eu-central-1.amazonaws.com/", "method": "PUT", "auth": {"aws": {"service": "s3"}}}`))
	if !errors.Is(err, over) {
		t.Error(err)
	}
}

// slowToClose is a connection that is closed some time after its other side has been told.
type slowToClose struct{ net.Conn }

func (c slowToClose) Close() error {
	time.Sleep(200 * time.Millisecond)
	return c.Conn.Close()
}

// TestHTTPAnswersOfGoogleThatRefuse: an API of Google answers 200 also where rows were not inserted, where writes or statements
// failed, and where an operation has failed at once.
func TestHTTPAnswersOfGoogleThatRefuse(t *testing.T) {
	meta, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = w.Write([]byte(`{"access_token": "ya29.t0ken"}`))
	})
	env := map[string]string{"GCE_METADATA_HOST": meta.Listener.Addr().String()}
	const done = ""
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "bigquery/v2/projects/p/datasets/d/tables/t/insertAll", `{"kind": "x", "insertErrors": [{"index": 0, "errors": [{"reason": "invalid"}]}]}`, `but insertErrors is [{"index":0,`},
		{"POST", "bigquery/v2/projects/p/datasets/d/tables/t/insertAll", `{"kind": "bigquery#tableDataInsertAllResponse"}`, done},
		{"POST", "bigquery/v2/projects/p/jobs", `{"status": {"state": "DONE", "errorResult": {"reason": "notFound"}}}`, `but status is {"state":"DONE","errorResult"`},
		{"POST", "bigquery/v2/projects/p/jobs", `{"status": {"state": "DONE", "errorResult": null, "errors": [{"reason": "invalid"}]}}`, done}, // some rows were left out, as the job allows
		{"POST", "v1/projects/p/databases/d/documents:batchWrite", `{"writeResults": [{}, {}], "status": [{}, {"code": 5, "message": "no such document"}]}`, `but status is [{},{"code":5`},
		{"POST", "v1/projects/p/databases/d/documents:batchWrite", `{"writeResults": [{}, {}], "status": [{}, {}]}`, done},
		{"POST", "v1/projects/p/databases/d/documents:batchWrite", `{"writeResults": [{}, `, "but the answer broke off before it said whether all was done"},
		// Spanner streams its answers to this method: by HTTP, they are the elements of a list.
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:batchWrite", `[{"indexes": [0], "status": {}}, {"indexes": [1], "status": {"code": 6}}]`, `but status is {"code":6}`},
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:batchWrite", `[{"indexes": [0, 1], "status": {}, "commitTimestamp": "2026-11-20T08:00:00Z"}]`, done},
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:batchWrite", `[]`, done},
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:batchWrite", `[{"indexes": [0], "status": {}}, {"ind`, "but the answer broke off before it said whether all was done"},
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:executeBatchDml", `{"resultSets": [], "status": {"code": 3}}`, `but status is {"code":3}`},
		{"POST", "v1/projects/p/instances/i/databases/d/sessions/s:executeBatchDml", `{"resultSets": [{}], "status": {}}`, done},
		{"POST", "v2/projects/p/locations/l/jobs/rollup:run", `{"name": "operations/1", "done": true, "error": {"code": 8, "message": "quota"}}`, `but error is {"code":8,`},
		{"POST", "v2/projects/p/locations/l/jobs/rollup:run", `{"name": "operations/1", "metadata": {}}`, done},
		{"POST", "v2/projects/p/locations/l/jobs/rollup:run", `{"name": "operations/1", "metadata": {`, "but it broke off: unexpected EOF"},
		{"POST", "compute/v1/projects/p/zones/z/instances/i/start", `{"kind": "compute#operation", "status": "DONE", "error": {"errors": [{"code": "QUOTA_EXCEEDED"}]}}`, `but error is {"errors":[{"code":"QUOTA_EXCEEDED"`},
		{"GET", "v2/projects/p/locations/l/operations/1", `{"name": "operations/1", "done": true, "error": {"code": 8}}`, done}, // that is what was asked for
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "gcp"}}}, env, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(c.body))
			if !json.Valid([]byte(c.body)) {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		_, err := x.Execute(t.Context(), attempt(`{"url": "https://x.googleapis.com/`+c.path+`", "method": "`+c.method+`", "auth": {"gcp": {"token": "access"}}}`))
		failure, told := errors.AsType[*Error](err)
		if c.want == done && err != nil || c.want != done && (!told || failure.Code != "200" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: %v, want %q", c.method, c.path, err, c.want)
		}
	}
}

// TestHTTPAnswersThatRefuseAsExpected: a step may expect a refusal, such as that of a task or a bucket that is there already.
func TestHTTPAnswersThatRefuseAsExpected(t *testing.T) {
	meta, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = w.Write([]byte(`{"access_token": "ya29.t0ken"}`))
	})
	env := map[string]string{"GCE_METADATA_HOST": meta.Listener.Addr().String()}
	maps.Copy(env, credentials)
	env["AWS_REGION"] = "eu-central-1"
	for auth, body := range map[string]string{
		`{"gcp": {"token": "access"}}`: `{"error": {"code": 409, "message": "Requested entity already exists", "status": "ALREADY_EXISTS"}}`,
		`{"aws": {"service": "s3"}}`:   `<Error><Code>BucketAlreadyOwnedByYou</Code></Error>`,
		`{"aws": {"service": "sns"}}`:  `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidParameter</Code></Error></ErrorResponse>`,
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "gcp"}, {Name: "aws"}}}, env, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(body))
		})
		if _, err := x.Execute(t.Context(), attempt(`{"url": "https://x.eu-central-1.googleapis.com/", "method": "PUT", "expect": ["2xx", "409"], "auth": `+auth+`}`)); err != nil {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

// TestHTTPAnswersThatOnlyLookRefused: what another server answers means what that server says.
func TestHTTPAnswersThatOnlyLookRefused(t *testing.T) {
	s, _ := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Function-Error", "Handled")
		_, _ = w.Write([]byte(`{"FailedEntryCount": 1}`))
	})
	if _, err := execute(t, loopback(nil), `{"url": "`+s.URL+`", "headers": {"X-Amz-Target": "AWSEvents.PutEvents"}}`); err != nil {
		t.Error(err)
	}
}

// TestHTTPStartsAStateMachineOnce: a delivery whose end was not recorded has started the machine, and the machine has ended since.
func TestHTTPStartsAStateMachineOnce(t *testing.T) {
	for _, c := range []struct {
		name, target, answer, want string
	}{
		{"${run_id}", "AWSStepFunctions.StartExecution", "com.amazonaws.states#ExecutionAlreadyExists", ""},
		{"nightly", "AWSStepFunctions.StartExecution", "com.amazonaws.states#ExecutionAlreadyExists", "the answer is 400"}, // by somebody else
		{"${run_id}", "AWSStepFunctions.StartExecution", "com.amazonaws.states#InvalidName", "the answer is 400"},
		{"${run_id}", "AWSStepFunctions.StartSyncExecution", "com.amazonaws.states#ExecutionAlreadyExists", "the answer is 400"},
	} {
		x, _ := cloudThat(t, &Host{Clouds: []Cloud{{Name: "aws"}}}, credentials, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"` + c.answer + `","message":"Execution Already Exists"}`))
		})
		spec := `{"url": "https://states.eu-central-1.amazonaws.com/", "headers": {"X-Amz-Target": "` + c.target + `"}, "json": {"name": "` + c.name + `", "input": "{\"run\": \"${run_id}\"}"}, "auth": {"aws": {"service": "states"}}}`
		if _, err := x.Execute(t.Context(), attempt(spec)); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %s, %s: %v", c.name, c.target, c.answer, err)
		}
	}
}
