// Package retry decides when a failed operation of the controller is tried again. The delay depends
// on the kind of the failure: something is in progress in the shoot, the shoot's API server does
// not answer, or anything else.
//
// The extension library drops the delay of a RequeueAfterError of Actuator.Reconcile (v1.147.1), so
// the kind reaches the workqueue by its rate limiter.
package retry
