/** A clock that only moves when told to, and runs what is due on the way. */
export function fakeClock() {
  let time = 0
  let due: { at: number; run: () => void }[] = []
  return {
    now: () => time,
    after(ms: number, run: () => void) {
      const timer = { at: time + ms, run }
      due.push(timer)
      return () => void (due = due.filter((other) => other !== timer))
    },
    advance(ms: number) {
      const end = time + ms
      for (;;) {
        const next = due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (next === undefined) break
        due = due.filter((other) => other !== next)
        time = next.at
        next.run()
      }
      time = end
    },
    get waiting() {
      return due.length
    },
  }
}
