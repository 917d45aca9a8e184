// Package fetch decides how what a cache does not have comes from the upstream: once for all clients that want it at the same time,
// and into the store only if it fits there. distribution fetches anew for each client but the first (distribution#3969), and on a full
// volume it cuts the answer where the space ends, after which containerd asks nobody else (containerd#9552).
//
// A Group is a middleware of distribution's repositories and of its storage. The first client for a blob that is not stored starts
// a flight, in which distribution fetches and stores it; every client, the first one among them, is sent the file that grows in the
// store, at its own speed, from where it wants to go on. So a client that is slow, frozen or gone keeps nobody from anything. A flight
// ends with its last client. Whoever comes to one that gets next to nothing for a while asks the upstream by himself; who is in it
// already stays, as with any slow connection. If the store fails, each client gets the rest from the upstream past it.
//
// The package knows distribution's interfaces, its configuration and the layout of its store, and nothing of processes or Kubernetes.
package fetch
