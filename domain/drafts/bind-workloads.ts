import { PceApiError } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError } from '../../schemas/errors.js'
import type { Service } from '../../schemas/pce/service.js'
import type { ServiceBinding, VirtualService } from '../../schemas/pce/virtual-service.js'
import type { PortOverrideInput } from '../../schemas/virtual-service-shapes.js'
import type { ToolContext } from '../call.js'
import { describeObject, findByHref } from '../inventory/find-object.js'
import { toActiveHref } from '../inventory/parse-href.js'
import { withDetails } from '../inventory/pce-errors.js'
import { parseProtocol } from '../inventory/protocols.js'
import { findDifferences } from '../policy/compare-stored.js'
import { capital } from '../text/capital.js'
import { quote } from '../text/escape-text.js'
import { explainPending } from './pending-deletion.js'
import { readBindings } from './read-bindings.js'

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal'>

/** Maximum number of bindings that one request creates. The PCE creates either all bindings of a request or none. */
const CHUNK = 500

interface PortOverride {
  port: number
  proto: number
  new_port: number
  new_to_port?: number
}

/** A workload that a call selected. `name` is its host name if it has no name. */
export interface NamedWorkload {
  href: string
  name: string
}

/** What a call would do to the bindings of a virtual service. */
export interface BindingPlan {
  service: VirtualService
  /** The bindings before the call. */
  before: readonly ServiceBinding[]
  overrides: readonly PortOverride[] | undefined
  /** The workloads to bind, and the bindings to remove. One of both lists is always empty. */
  bind: readonly NamedWorkload[]
  unbind: readonly { workload: NamedWorkload; binding: ServiceBinding }[]
  /** The selected workloads that need no change, because they are already bound or already not bound. */
  already: readonly NamedWorkload[]
}

/**
 * Plans to bind workloads to a virtual service, or to remove their bindings.
 *
 * @throws {ToolError} invalid_argument if the virtual service was never provisioned or is pending deletion, because
 * bindings belong to the active version (P23); if an override names a port that the virtual service does not have; or
 * if a workload is already bound with other overrides, which cannot be changed.
 */
export async function planBindings(
  ctx: Ctx,
  service: VirtualService,
  workloads: readonly NamedWorkload[],
  how: { unbind: boolean; overrides: readonly PortOverrideInput[] | undefined },
): Promise<BindingPlan> {
  const overrides = how.overrides?.map((one, at) => planOverride(one, `port_overrides[${at}]`))
  if (!how.unbind) {
    refuseUnprovisioned(service)
    if (overrides !== undefined) await refuseOtherPorts(ctx, service, overrides)
  }
  const before = await readBindings(ctx, service)
  const bindingOf = new Map(before.map((binding) => [binding.workload?.href ?? '', binding]))
  const bound = workloads.filter(({ href }) => bindingOf.has(href))
  const plan = { service, before, overrides }
  if (how.unbind) {
    const unbind = before.flatMap((binding) => {
      const workload = workloads.find(({ href }) => href === binding.workload?.href)
      return workload === undefined ? [] : [{ workload, binding }]
    })
    return { ...plan, bind: [], unbind, already: workloads.filter(({ href }) => !bindingOf.has(href)) }
  }
  for (const workload of bound) refuseOtherOverrides(workload, bindingOf.get(workload.href), overrides)
  return { ...plan, bind: workloads.filter(({ href }) => !bindingOf.has(href)), unbind: [], already: bound }
}

function refuseUnprovisioned(service: VirtualService): void {
  const what = describeObject('virtual_services', service)
  const pending = explainPending('virtual_services', service)
  if (pending !== undefined) throw new ToolError('invalid_argument', pending.why, pending.details)
  if (service.update_type !== 'create') return
  const text = `${capital(what)} has not been provisioned, and workloads are bound to the active one.`
  const details = { reason: 'not_provisioned', href: service.href }
  throw new ToolError('invalid_argument', text, details, { hint: 'Provision it first.' })
}

function planOverride({ port, proto, new_port: to, new_to_port: last }: PortOverrideInput, at: string): PortOverride {
  const wrong = (text: string) => new ToolError('invalid_argument', `${at}: ${text}`, { argument: at })
  const number = parseProtocol(proto)
  if (number !== 6 && number !== 17) throw wrong('proto is tcp (6) or udp (17).')
  for (const [field, value] of Object.entries({ port, new_port: to, new_to_port: last }))
    if (value !== undefined && (value < 1 || value > 65_535)) throw wrong(`${field} is a whole number from 1 to 65535.`)
  if (last !== undefined && last < to) throw wrong('new_to_port is the end of a range that begins with new_port.')
  return { port, proto: number, new_port: to, ...(last !== undefined && last !== to && { new_to_port: last }) }
}

/** Throws invalid_argument if an override names a port that the virtual service does not have. */
async function refuseOtherPorts(
  { pce, signal }: Ctx,
  virtual: VirtualService,
  overrides: readonly PortOverride[],
): Promise<void> {
  const of: Service | VirtualService =
    virtual.service == null ? virtual : await findByHref(pce, 'services', virtual.service.href, 'draft', signal)
  const ports = of.service_ports ?? []
  // The service consists of Windows programs that may listen on any port, so there is no port to compare with.
  if (ports.length === 0) return
  const offers = ({ port, proto }: PortOverride) =>
    ports.some((one) => {
      if (Number(one.proto) !== proto) return one.proto === undefined || Number(one.proto) === -1
      return one.port == null || (one.port <= port && port <= (one.to_port ?? one.port))
    })
  const at = overrides.findIndex((one) => !offers(one))
  const wrong = overrides[at]
  if (wrong === undefined) return
  const text = `port_overrides[${at}]: ${describeObject('virtual_services', virtual)} does not offer ${wrong.port}/${wrong.proto === 6 ? 'tcp' : 'udp'}.`
  throw new ToolError('invalid_argument', text, { argument: `port_overrides[${at}]`, offered: ports })
}

function refuseOtherOverrides(
  workload: NamedWorkload,
  binding: ServiceBinding | undefined,
  overrides: readonly PortOverride[] | undefined,
): void {
  if (binding === undefined || overrides === undefined) return
  const sent = { port_overrides: overrides }
  if (findDifferences(sent, { port_overrides: binding.port_overrides ?? [] }).length === 0) return
  const text = `${quote(workload.name)} is bound already, with other port overrides, and a binding cannot be changed.`
  const details = { argument: 'port_overrides', workload: workload.href, port_overrides: binding.port_overrides ?? [] }
  throw new ToolError('invalid_argument', text, details, { hint: 'Unbind it first, or leave port_overrides out.' })
}

/** Returns the requests that a plan sends, in the order of sending. */
export function bindingRequests(orgId: string, plan: BindingPlan): PlannedRequest[] {
  return [
    ...chunksOf(plan.bind).map((part) => ({
      method: 'POST',
      path: `/orgs/${orgId}/service_bindings`,
      body: bodyOf(plan, part),
    })),
    ...plan.unbind.map(({ binding }) => ({ method: 'DELETE', path: binding.href, body: null })),
  ]
}

const chunksOf = <T>(items: readonly T[]): (readonly T[])[] =>
  Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, at) => items.slice(at * CHUNK, (at + 1) * CHUNK))

const bodyOf = ({ service, overrides }: BindingPlan, workloads: readonly NamedWorkload[]) =>
  workloads.map(({ href }) => ({
    virtual_service: { href: toActiveHref(service.href) },
    workload: { href },
    ...(overrides !== undefined && { port_overrides: overrides }),
  }))

/** The result of carrying out a plan. */
export interface BindingsWritten {
  /** The bindings after the call; null if they could not be read back. */
  after: readonly ServiceBinding[] | null
}

/**
 * Carries out a plan and reads the bindings back. If a request fails but all bindings are as planned, for example
 * because only the answer was lost, this is not an error. Otherwise the error says for each workload whether it is
 * bound, and repeating the call completes the plan.
 */
export async function writeBindings(ctx: Ctx, plan: BindingPlan): Promise<BindingsWritten> {
  const { pce, signal } = ctx
  let failure: unknown
  try {
    for (const part of chunksOf(plan.bind)) {
      signal.throwIfAborted()
      await pce.serviceBindings.create(bodyOf(plan, part))
    }
    for (const { binding } of plan.unbind) {
      signal.throwIfAborted()
      await pce.serviceBindings.delete(binding.href).catch((error: unknown) => {
        // Somebody else has already removed the binding, which is what the call wants.
        if (!(error instanceof PceApiError) || !error.isGone) throw error
      })
    }
  } catch (error) {
    failure = error
  }
  const after = await readBindings(ctx, plan.service).catch(() => null)
  if (failure === undefined && after === null) return { after }
  const bound = new Set((after ?? []).map(({ workload }) => workload?.href))
  const isLeft = ({ href }: NamedWorkload, shouldBe: boolean) => bound.has(href) !== shouldBe
  const left = [
    ...plan.bind.filter((workload) => isLeft(workload, true)),
    ...plan.unbind.map(({ workload }) => workload).filter((workload) => isLeft(workload, false)),
  ]
  if (after !== null && left.length === 0) return { after }
  throw explainLeft(failure, plan, after === null ? null : left)
}

/** Maximum number of workloads named in an error. */
const MOST_NAMED = 50

function explainLeft(failure: unknown, plan: BindingPlan, left: readonly NamedWorkload[] | null): ToolError {
  const all = plan.bind.length + plan.unbind.length
  const verb = plan.bind.length > 0 ? 'bound' : 'unbound'
  if (left === null) {
    const facts = { planned: all, read_back: 'unreadable' }
    return withDetails(
      failure,
      facts,
      `Which of them are ${verb} could not be read. A dry run of the same call says it.`,
    )
  }
  const facts = {
    [verb]: all - left.length,
    [`not_${verb}`]: left.slice(0, MOST_NAMED).map(({ href, name }) => ({ href, name })),
    [`not_${verb}_total`]: left.length,
  }
  const hint = 'The same call completes what is left.'
  if (failure !== undefined) return withDetails(failure, facts, hint)
  const text = `The PCE accepted the request, but ${left.length} of ${all} workloads are not ${verb}.`
  return new ToolError('pce_error', text, facts, { hint })
}
