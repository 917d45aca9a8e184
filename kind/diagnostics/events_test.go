package diagnostics

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPresentableCopies(t *testing.T) {
	secret := object("v1", "Secret", "s", map[string]any{"data": map[string]any{"a": "YQ=="}})
	presentable(*secret)
	if data, _, _ := unstructured.NestedString(secret.Object, "data", "a"); data != "YQ==" {
		t.Errorf("data of the original: %q", data)
	}
}

func TestLogsOf(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Status: corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "clean", State: ended}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "again", State: running, LastTerminationState: ended},
			{Name: "waiting", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
		},
	}}
	var files []string
	for _, log := range logsOf(pod) {
		files = append(files, log.file)
	}
	want := []string{"logs/n/p/clean.log", "logs/n/p/again.log", "logs/n/p/again.previous.log"}
	if !slices.Equal(files, want) {
		t.Errorf("logs %v, want %v", files, want)
	}
}

func TestEventTable(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	pod := corev1.ObjectReference{Kind: "Pod", Namespace: "n", Name: "p"}
	got := eventTable([]corev1.Event{
		{Reason: "C", Type: "Warning", InvolvedObject: pod, LastTimestamp: metav1.NewTime(at(3)), Count: 7, Message: "two\nlines"},
		{Reason: "A", Type: "Normal", InvolvedObject: pod, EventTime: metav1.NewMicroTime(at(1))},
		{Reason: "B", Type: "Normal", InvolvedObject: pod, EventTime: metav1.NewMicroTime(at(1)),
			Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(2))}},
	})
	want := "2026-01-02T03:04:01Z  Normal   A  n/Pod/p  1x  \n" +
		"2026-01-02T03:04:02Z  Normal   B  n/Pod/p  1x  \n" +
		"2026-01-02T03:04:03Z  Warning  C  n/Pod/p  7x  two lines\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
