/**
 * A TCP proxy in front of PostgreSQL that reads the client's half of the protocol (version 3.0, without TLS): it counts round trips, and
 * does to connections what networks and failovers do.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

interface Test {
  teardown(fn: () => unknown): void
}

/** What becomes of the connection whose answer was dropped: it is reset, or nothing ever comes from it again. */
export type Afterwards = 'reset' | 'silence'

export interface Counts {
  /** Connections that have come, whether or not they logged in. */
  connections: number
  /** Messages that an answer is waited for: Query, Sync and FunctionCall. Those of a login are not among them. */
  roundTrips: number
  /** Requests to cancel a statement. */
  cancels: number
  /** The text of each of them that has one, in order; the last 1000. */
  statements: string[]
}

export interface DroppedAnswer {
  /** Resolves once PostgreSQL has answered in full and the client has not heard of it. */
  dropped: Promise<void>
  /** No more: a later match passes. */
  cancel(): void
}

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>

/** Longer messages are passed on like any other; of their text so much is looked at. */
const LONGEST_TEXT = 1 << 16
const MOST_STATEMENTS = 1000
const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
const CANCEL_REQUEST = 80877102
const TYPES_WITH_ANSWER = new Set(['Q', 'S', 'F'])
const TYPES_WITH_TEXT = new Set(['Q', 'P', 'B'])

interface Connection {
  client: Socket
  server: Socket
  /** Of prepared statements, by name. */
  texts: Map<string, string>
  /** Of the messages since the last one that an answer is waited for. */
  current: string[]
  dropping: { afterwards: Afterwards; done: () => void } | null
  isMute: boolean
}

interface Pattern {
  matches: RegExp
  afterwards: Afterwards
  done: () => void
}

/** Starts one in front of the server at this port of 127.0.0.1, without faults. It ends with the test. */
export async function startFaultProxy(t: Test, { port: first }: { port: number }) {
  let behind = first
  const connections = new Set<Connection>()
  const counts: Counts = { connections: 0, roundTrips: 0, cancels: 0, statements: [] }
  const patterns: Pattern[] = []
  let delayMs = 0
  let countdown: { left: number; act: (connection: Connection) => Order | null } | null = null
  let held: { released: Promise<void>; release: () => void } | null = null
  let front: Server | null = null
  const port = await listen(0)
  t.teardown(() => {
    front?.close()
    held?.release()
    for (const connection of connections) destroy(connection)
  })

  async function listen(at: number): Promise<number> {
    const server = createServer({ noDelay: true }, (client) => take(client))
    server.listen(at, '127.0.0.1')
    await once(server, 'listening')
    front = server
    return (server.address() as AddressInfo).port
  }

  function take(client: Socket): void {
    counts.connections++
    const server = connect({ host: '127.0.0.1', port: behind, noDelay: true })
    const connection: Connection = { client, server, texts: new Map(), current: [], dropping: null, isMute: false }
    connections.add(connection)
    for (const socket of [client, server]) {
      // Either side learns of the end of the other, however that came.
      socket.on('error', () => destroy(connection))
      socket.once('close', () => destroy(connection))
    }
    const reader = readFrontend(
      (type, text) => seeMessage(connection, type, text),
      () => counts.cancels++,
      () => client.write('N'),
    )
    void pass(client, server, (chunk) => {
      const { onward, orders } = reader(chunk)
      if (orders.includes('cut')) reset(connection)
      if (orders.includes('mute')) connection.isMute = true
      if (connection.isMute || orders.includes('cut')) return null
      if (orders.includes('reset')) setImmediate(() => reset(connection))
      return onward
    })
    const ready = readBackend()
    void pass(server, client, (chunk) => {
      const isReady = ready(chunk)
      const { dropping } = connection
      if (dropping === null) return chunk
      if (isReady) {
        if (dropping.afterwards === 'reset') reset(connection)
        dropping.done()
      }
      return null
    })
  }

  function seeMessage(connection: Connection, type: string, body: Buffer): Order | null {
    const text = textOf(connection, type, body)
    if (text !== undefined) connection.current.push(text)
    if (!TYPES_WITH_ANSWER.has(type)) return null
    const texts = connection.current.splice(0)
    counts.roundTrips++
    counts.statements.push(...texts)
    counts.statements.splice(0, counts.statements.length - MOST_STATEMENTS)
    if (countdown !== null && --countdown.left <= 0) {
      const { act } = countdown
      countdown = null
      return act(connection)
    }
    const pattern = patterns.findIndex(({ matches }) => texts.some((one) => matches.test(one)))
    if (pattern === -1) return null
    connection.dropping = patterns.splice(pattern, 1)[0]!
    return null
  }

  async function pass(from: Socket, to: Socket, look: (chunk: Buffer) => Buffer | null): Promise<void> {
    try {
      for await (const chunk of from as AsyncIterable<Buffer>) {
        if (delayMs > 0) await wait(delayMs)
        while (held !== null) await held.released
        const onward = look(chunk)
        // One chunk at a time: what the reader does not take stays with the kernel of the writer.
        if (onward !== null && onward.length > 0 && !to.write(onward))
          await Promise.race([once(to, 'drain'), once(to, 'close')])
      }
      to.end()
    } catch {
      to.destroy()
    }
  }

  function destroy(connection: Connection): void {
    connections.delete(connection)
    connection.client.destroy()
    connection.server.destroy()
  }

  function reset(connection: Connection): void {
    connections.delete(connection)
    connection.client.resetAndDestroy()
    connection.server.resetAndDestroy()
  }

  return {
    port,
    counts,
    /** Connections that are open now. */
    open: () => connections.size,
    /** The URL of a database, by way of this proxy. */
    through(url: string): string {
      const changed = new URL(url)
      changed.hostname = '127.0.0.1'
      changed.port = String(port)
      return changed.href
    },
    clearCounts(): void {
      Object.assign(counts, { connections: 0, roundTrips: 0, cancels: 0, statements: [] })
    },
    /** From now on every piece waits so long before it is passed on, in either direction; 0 ends that. */
    delay(ms: number): void {
      delayMs = ms
    },
    /** As the address of a failover does: from now on new connections go to this server, and those that are open are reset. */
    switchTo({ port: next }: { port: number }): void {
      behind = next
      for (const connection of connections) reset(connection)
    },
    /** Resets the connections that are open (RST to both sides). */
    resetAll(): void {
      for (const connection of connections) reset(connection)
    },
    /**
     * Resets the connection that sends the k-th message from now on that an answer is waited for: before PostgreSQL has it, or (`delivered`)
     * when it may have it.
     */
    resetAt(k: number, { delivered = false } = {}): void {
      countdown = { left: k, act: () => (delivered ? 'reset' : 'cut') }
    },
    /**
     * Whoever sends the k-th such message from now on waits for ever: PostgreSQL never has it, or (`delivered`) has answered it, once `reached`
     * resolves. The other connections go on.
     */
    stopAt(k: number, { delivered = false } = {}): { reached: Promise<void>; cancel: () => void } {
      let done = () => {}
      const reached = new Promise<void>((resolve) => (done = resolve))
      const mine = {
        left: k,
        act(connection: Connection) {
          if (delivered) {
            connection.dropping = { afterwards: 'silence' as const, done }
            return null
          }
          done()
          return 'mute' as const
        },
      }
      countdown = mine
      return {
        reached,
        cancel() {
          if (countdown === mine) countdown = null
        },
      }
    },
    /** Passes nothing on, in either direction, on any connection, until it is released. */
    hold(): () => void {
      if (held !== null) throw new Error('it is held')
      let release = () => {}
      const released = new Promise<void>((resolve) => (release = resolve))
      held = { released, release }
      return () => {
        held = null
        release()
      }
    },
    /** New connections are refused (ECONNREFUSED) until `accept`; those that are open stay. */
    refuse(): void {
      front?.close()
      front = null
    },
    async accept(): Promise<void> {
      if (front === null) await listen(port)
    },
    /**
     * PostgreSQL does what the next statement says whose text matches, and the client never hears of it. Once the answer is there in full, the
     * connection is reset or stays silent.
     */
    dropAnswer(matches: RegExp, afterwards: Afterwards = 'reset'): DroppedAnswer {
      let done = () => {}
      const dropped = new Promise<void>((resolve) => (done = resolve))
      const pattern: Pattern = { matches, afterwards, done }
      patterns.push(pattern)
      return {
        dropped,
        cancel() {
          const at = patterns.indexOf(pattern)
          if (at !== -1) patterns.splice(at, 1)
        },
      }
    },
  }
}

/** The text of a Query, of a Parse (kept by its name), or of the statement that a Bind names. */
function textOf({ texts }: Connection, type: string, body: Buffer): string | undefined {
  if (!TYPES_WITH_TEXT.has(type)) return undefined
  const [first = '', second = ''] = body.toString('utf8').split('\0', 2)
  if (type === 'Q') return first
  if (type === 'B') return second === '' ? undefined : texts.get(second)
  // A Parse is its name and its text. An unnamed one is bound at once; a named one is seen again with each Bind.
  if (first === '') return second
  if (texts.size >= MOST_STATEMENTS) texts.clear()
  texts.set(first, second)
  return undefined
}

/** About a message: `cut` the connection before it arrives, `reset` it behind it, or let PostgreSQL hear nothing from it on. */
type Order = 'cut' | 'reset' | 'mute'

/**
 * Follows what a client sends, piece by piece, and says of each piece what is to be passed on and what was ordered about a message in it.
 * Requests for encryption are answered with no, and not passed on.
 */
function readFrontend(
  message: (type: string, body: Buffer) => Order | null,
  cancelled: () => void,
  refuseEncryption: () => void,
): (chunk: Buffer) => { onward: Buffer; orders: Order[] } {
  let isStarted = false
  let start: Buffer = Buffer.alloc(0)
  const follow = readMessages(LONGEST_TEXT)
  return (chunk) => {
    const onward: Buffer[] = []
    const orders: Order[] = []
    let rest = chunk
    while (!isStarted && rest.length > 0) {
      // The first messages have no type; they are short.
      start = Buffer.concat([start, rest])
      rest = Buffer.alloc(0)
      if (start.length < 8) break
      const [length, code] = [start.readUInt32BE(0), start.readUInt32BE(4)]
      if (code === SSL_REQUEST || code === GSS_REQUEST) {
        refuseEncryption()
        rest = start.subarray(8)
        start = Buffer.alloc(0)
        continue
      }
      if (start.length < length) break
      if (code === CANCEL_REQUEST) cancelled()
      isStarted = true
      onward.push(start.subarray(0, length))
      rest = start.subarray(length)
      start = Buffer.alloc(0)
    }
    if (rest.length > 0) {
      onward.push(rest)
      follow(rest, (type, body) => {
        const order = message(type, body)
        if (order !== null) orders.push(order)
      })
    }
    return { onward: Buffer.concat(onward), orders }
  }
}

/** Follows what PostgreSQL sends: whether a piece ends an answer (ReadyForQuery). */
function readBackend(): (chunk: Buffer) => boolean {
  const follow = readMessages(0)
  return (chunk) => {
    let isReady = false
    follow(chunk, (type) => (isReady ||= type === 'Z'))
    return isReady
  }
}

/** Cuts a stream into messages (a type, a length, a body); of each body no more than `most` bytes are kept. */
function readMessages(most: number): (chunk: Buffer, take: (type: string, body: Buffer) => void) => void {
  const head = Buffer.alloc(5)
  let headLength = 0
  let left = 0
  let kept: Buffer[] = []
  let keptLength = 0
  return (chunk, take) => {
    let at = 0
    while (at < chunk.length) {
      if (headLength < 5) {
        const copied = chunk.copy(head, headLength, at, at + 5 - headLength)
        headLength += copied
        at += copied
        if (headLength < 5) return
        left = head.readUInt32BE(1) - 4
      }
      const part = chunk.subarray(at, at + left)
      if (keptLength < most) {
        // A copy: the piece may be much larger than what is kept of it.
        kept.push(Buffer.from(part.subarray(0, most - keptLength)))
        keptLength += Math.min(part.length, most - keptLength)
      }
      at += part.length
      left -= part.length
      if (left > 0) return
      take(String.fromCharCode(head[0]!), Buffer.concat(kept))
      headLength = 0
      kept = []
      keptLength = 0
    }
  }
}
