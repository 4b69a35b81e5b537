import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { invalidInput, invalidUri, notFound } from '../refusal.js'
import { advance, isPending } from '../status/progress.js'
import { startJob } from '../kinds/answer-collection.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

/** What a device's stored object keeps of them; a GET shows it under longer names. */
interface Instructions {
  /** The job that writes them, until it has ended. */
  job?: string
  data?: { href: string; timestamp: string }
  ack?: { href: string; timestamp: string }
}

const REQUEST = new Shape('network_devices_enforcement_instructions_request_post', Type.Object({}, CLOSED))
const APPLIED = new Shape(
  'network_devices_enforcement_instructions_applied_post',
  Type.Object({ [UNCERTAIN.appliedInstructionsField]: Type.Optional(Type.String()) }, CLOSED),
)
const SEVERAL = {
  all_devices: Type.Optional(Type.Literal(true)),
  network_devices: Type.Optional(Type.Array(Href)),
}
const REQUEST_SEVERAL = new Shape('network_devices_multi_enforcement_instructions_request_post', Type.Object(SEVERAL))
const APPLIED_SEVERAL = new Shape('network_devices_multi_enforcement_instructions_applied_post', Type.Object(SEVERAL))

/** What a device must be told to enforce, fetched and confirmed by whoever applies it (P55). */
export const enforcementInstructionRoutes: Route[] = [
  route('multi_enforcement_instructions_request', (call) => {
    const devices = chooseDevices(call.world, REQUEST_SEVERAL.read(call.body))
    return { status: UNCERTAIN.instructionsRequestStatus, changes: devices.map((device) => request(call, device)) }
  }),
  route('multi_enforcement_instructions_applied', ({ world, body }) => {
    const devices = chooseDevices(world, APPLIED_SEVERAL.read(body))
    return { status: 204, changes: devices.map((device) => acknowledge(world, device)) }
  }),
  route(':device/enforcement_instructions_request', (call) => {
    REQUEST.read(call.body)
    const device = requireDevice(call)
    return { status: UNCERTAIN.instructionsRequestStatus, changes: [request(call, device)] }
  }),
  route(':device/enforcement_instructions_applied', (call) => {
    const applied = (APPLIED.read(call.body) as Json)[UNCERTAIN.appliedInstructionsField]
    const device = requireDevice(call)
    if (applied !== undefined && applied !== instructionsOf(device).data?.href) throw invalidUri(applied)
    return { status: 204, changes: [acknowledge(call.world, device)] }
  }),
]

/** One more look at the job of a device. */
export function advanceInstructions(world: World, href: string): void {
  const device = world.store('network_devices').get(href)
  const { job: jobHref, ...rest } = device ? instructionsOf(device) : {}
  const job = world.jobs.get(jobHref ?? '')
  if (!device || !job) return
  job.progress = advance(job.progress, world.options.pollsUntilDone)
  if (isPending(job.progress)) return
  job.terminatedAt ??= world.now()
  const data = { href: job.resultHref, timestamp: job.terminatedAt }
  save(world, device, { ...rest, ...(job.progress.stage === 'done' && { data }) })
}

export function renderInstructions(device: PceObject): Json {
  const { job, data, ack } = instructionsOf(device)
  return {
    enforcement_instructions_generation_in_progress: job !== undefined,
    ...(data && {
      enforcement_instructions_data_href: data.href,
      enforcement_instructions_data_timestamp: data.timestamp,
    }),
    ...(ack && {
      enforcement_instructions_ack_href: ack.href,
      enforcement_instructions_ack_timestamp: ack.timestamp,
    }),
  }
}

function route(below: string, handle: (call: Call) => { status: number; changes: Change[] }): Route {
  const verb = below.slice(below.lastIndexOf('/') + 1)
  return { path: `/orgs/:org/network_devices/${below}`, verbs: { POST: { event: `network_device.${verb}`, handle } } }
}

/** The file is written by a job like any other; the device tells when it is there. */
function request(call: Call, device: PceObject): Change {
  const { world } = call
  const job = startJob({ ...call, path: device.href }, instructionRows(world, device)).headers!.location!
  return save(world, device, { ...instructionsOf(device), job })
}

function acknowledge(world: World, device: PceObject): Change {
  const { data, ...rest } = instructionsOf(device)
  const ack = data && { href: data.href, timestamp: world.now() }
  return save(world, device, { ...rest, ...(data && { data, ack }) })
}

/** Per endpoint, the workloads behind it. */
function instructionRows(world: World, device: PceObject): Json[] {
  const endpoints = world.store('network_endpoints').all()
  return endpoints
    .filter(({ href }) => href.startsWith(`${device.href}/`))
    .map(({ href, workloads }) => ({ network_endpoint: { href }, workloads, rules: [] }))
}

function chooseDevices(
  world: World,
  { all_devices, network_devices }: { all_devices?: boolean; network_devices?: { href: string }[] },
): PceObject[] {
  const store = world.store('network_devices')
  if (all_devices === true) return store.all()
  if (!network_devices) throw invalidInput('Either all_devices or network_devices is required')
  return network_devices.map(({ href }) => {
    const device = store.get(href)
    if (!device) throw invalidUri(href)
    return device
  })
}

function requireDevice({ world, path }: Call): PceObject {
  const device = world.store('network_devices').get(path.slice(0, path.lastIndexOf('/')))
  if (!device) throw notFound()
  return device
}

function instructionsOf(device: PceObject): Instructions {
  return device.instructions ?? {}
}

function save(world: World, device: PceObject, instructions: Instructions): Change {
  const next = { ...device, instructions }
  world.store('network_devices').set(next)
  const { name } = device.config as { name?: string }
  const [before, after] = [renderInstructions(device), renderInstructions(next)]
  return {
    resource: { network_device: { href: device.href, name } },
    type: 'update',
    changes: { enforcement_instructions: { before, after } },
  }
}
