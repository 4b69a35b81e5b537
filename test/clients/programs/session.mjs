/**
 * One client in a process of its own: scripts/clients.ts forks it, sends it a job, and gets back what the client saw. It is plain
 * JavaScript, because some clients need a later Node.js than the project, which runs it without a compiler.
 */
process.once('message', (job) => void run(job))

/** Does the same with every server of the job, one after the other, and sends what was seen by the name of the transport. */
async function run({ client, servers, uri, calls }) {
  const { connect } = await import(`./${client}.mjs`)
  const seen = {}
  for (const [transport, server] of Object.entries(servers))
    seen[transport] = await visit(() => connect(server), uri, calls)
  process.send(seen, () => process.exit(0))
}

/** Returns what the client saw of one server, or only the reason if it did not connect. */
async function visit(connect, uri, calls) {
  const connected = await attempt(connect)
  if (connected.thrown !== undefined) return { connect: connected }
  const { listTools, readResource, call, close } = connected.value
  const seen = {
    tools: await attempt(listTools),
    document: readResource === undefined ? { missing: true } : await attempt(() => readResource(uri)),
  }
  for (const [step, [name, args]] of Object.entries(calls)) seen[step] = await attempt(() => call(name, args))
  return { ...seen, close: await attempt(close) }
}

async function attempt(work) {
  try {
    return { value: await work() }
  } catch (error) {
    return { thrown: error instanceof Error ? error.message : String(error) }
  }
}
