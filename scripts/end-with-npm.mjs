// npm runs a script in a shell and passes SIGTERM on to that shell alone, which dies without telling its child. What `npm run`
// started ends when that shell is gone; started by itself, a program does not care who its parent was.
export function endWithNpm(stop) {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  setInterval(() => {
    if (process.ppid !== shell) stop()
  }, 500).unref()
}
