package aws

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor/outcome"
)

// undone has the operations whose answer 200 may say that all, or a part, of what was asked for was not done, and the member
// that says so.
var undone = map[string]string{
	"AWSEvents.PutEvents":                          "FailedEntryCount",
	"AWSEvents.PutTargets":                         "FailedEntryCount",
	"AWSEvents.RemoveTargets":                      "FailedEntryCount",
	"AWSStepFunctions.StartSyncExecution":          "status",
	"AmazonEC2ContainerServiceV20141113.RunTask":   "failures",
	"AmazonEC2ContainerServiceV20141113.StartTask": "failures",
	"AmazonSQS.ChangeMessageVisibilityBatch":       "Failed",
	"AmazonSQS.DeleteMessageBatch":                 "Failed",
	"AmazonSQS.SendMessageBatch":                   "Failed",
	"DynamoDB_20120810.BatchExecuteStatement":      "Responses",
	"DynamoDB_20120810.BatchGetItem":               "UnprocessedKeys",
	"DynamoDB_20120810.BatchWriteItem":             "UnprocessedItems",
	"Firehose_20150804.PutRecordBatch":             "FailedPutCount",
	"Kinesis_20131202.PutRecords":                  "FailedRecordCount",
	"Logs_20140328.PutLogEvents":                   "rejectedLogEventsInfo",
}

// done are the values of such a member where all was done.
var done = []string{"null", "0", "[]", "{}", `"SUCCEEDED"`}

// failed matches the error in an answer 200 in XML. S3 begins to answer before a copy, or the end of an upload, is done, because
// that takes long; and of several objects that are to be deleted it may delete some. SQS and SNS may take a part of a batch.
var failed = lazyregexp.New(`<(Error|Failed|BatchResultErrorEntry)>(?:\s|<member>|<[A-Za-z]+/>|<[A-Za-z]+>[^<]*</[A-Za-z]+>)*?<Code>([A-Za-z0-9.]+)</Code>`)

// Started reports whether an answer 400 says that a state machine was started earlier with the id of this run as its name. While
// the machine works, the service answers 200 to that; when it has ended, it refuses the name.
func Started(run string, sent http.Header, request, answer []byte) bool {
	var asked struct{ Name string }
	var refused struct {
		Type string `json:"__type"`
	}
	return sent.Get("X-Amz-Target") == "AWSStepFunctions.StartExecution" &&
		json.Unmarshal(answer, &refused) == nil && strings.HasSuffix(refused.Type, "ExecutionAlreadyExists") &&
		json.Unmarshal(request, &asked) == nil && run != "" && strings.Contains(asked.Name, run)
}

// Undone returns what an answer 200 of a service says was not done; empty: it says nothing of that. sent are the headers of the
// request. broke reports whether the body broke off before its end.
func Undone(service, method string, sent, got http.Header, body []byte, broke bool) string {
	if failure := got.Get("X-Amz-Function-Error"); failure != "" { // a function that was called has failed
		return "X-Amz-Function-Error is " + failure
	}
	target := sent.Get("X-Amz-Target")
	switch {
	case isS3(service):
		if method == http.MethodGet { // what it gets is an object, of whatever text
			return ""
		}
		return undoneXML(body, broke)
	case target == "" && (service == "sqs" || service == "sns"):
		return undoneXML(body, broke && bytes.Contains(body, []byte("Batch"))) // of one message, the status says it
	case service == "es" || service == "aoss": // OpenSearch may index a part of what it is sent in bulk
		if method == http.MethodGet { // what it gets is a document, with members of any name
			return ""
		}
		return outcome.Undone(body, "errors", false, func(value []byte) bool { return string(value) != "true" })
	}
	switch member := undone[target]; member {
	case "":
		return ""
	case "Responses":
		if !broke && len(body) >= outcome.Most { // it has what was read, too, so its length says nothing
			return ""
		}
		return outcome.Undone(body, member, broke, noErrors)
	default:
		return outcome.Undone(body, member, broke, func(value []byte) bool { return slices.Contains(done, string(value)) })
	}
}

// noErrors reports whether none of the statements of a batch has failed.
func noErrors(responses []byte) bool {
	var list []struct{ Error *json.RawMessage } // nil: none, or null
	if json.Unmarshal(responses, &list) != nil {
		return false
	}
	return !slices.ContainsFunc(list, func(r struct{ Error *json.RawMessage }) bool { return r.Error != nil })
}

func undoneXML(body []byte, broke bool) string {
	if m := failed.FindStringSubmatch(string(body)); m != nil {
		return m[1] + " is " + m[2]
	} else if broke {
		return outcome.BrokeOff
	}
	return ""
}
