/**
 * Runs one named check, and reports it as a line that begins with `ok` or `FAILED`. If a check failed, the later ones
 * fail without being run, because they depend on its results.
 */
export async function reportStep(name: string, check: () => void | Promise<void>): Promise<boolean> {
  const started = performance.now()
  try {
    if (hasFailed) throw new Error('needs the step before it')
    await check()
    console.log(`ok      ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  } catch (error) {
    hasFailed = true
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`)
  }
  return !hasFailed
}

let hasFailed = false
