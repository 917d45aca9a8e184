//go:build e2e

package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// AwaitCondition waits until the Extension's condition CachesHealthy has the status, and its
// message begins with the text and has all of the words. It proves that what the condition reports
// fails no operation: the last one succeeded, and the condition has no error code.
func (p *Run) AwaitCondition(ctx context.Context, want gardencorev1beta1.ConditionStatus, begins string, words ...string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("condition %s is %s", v1alpha3.ConditionCachesHealthy, want), time.Minute, func(ctx context.Context) (bool, string, error) {
		extension, err := GetExtension(ctx, p)
		if err != nil {
			return false, "", err
		}
		if state := StateOf(extension); state != gardencorev1beta1.LastOperationStateSucceeded {
			return false, fmt.Sprintf("the Extension is %s", state), nil
		}
		condition := v1beta1helper.GetCondition(extension.Status.Conditions, v1alpha3.ConditionCachesHealthy)
		if condition == nil {
			return false, "there is no condition", nil
		}
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(condition.Message, word) })
		return condition.Status == want && strings.HasPrefix(condition.Message, begins) && len(missing) == 0 && len(condition.Codes) == 0,
			fmt.Sprintf("%s, codes %v, %q, which lacks %q", condition.Status, condition.Codes, condition.Message, missing), nil
	})
}
