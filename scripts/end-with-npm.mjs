// Ends a program when the npm that started it ends. npm runs a script in a shell. It passes SIGTERM only to this shell,
// and the shell ends without passing the signal on to its child. A program that npm has not started is not affected.
export function endWithNpm(stop) {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  setInterval(() => {
    if (process.ppid !== shell) stop()
  }, 500).unref()
}
