// Ends a program when the npm that started it ends. npm runs a script in a shell and passes SIGTERM to that shell
// alone, which ends without passing it on to its child. A program that was not started by npm is left alone.
export function endWithNpm(stop) {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  setInterval(() => {
    if (process.ppid !== shell) stop()
  }, 500).unref()
}
