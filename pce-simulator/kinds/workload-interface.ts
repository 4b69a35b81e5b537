import { isIP } from 'node:net'
import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { Refusal, invalidInput, notAcceptable, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { partial } from '../validate/query-filters.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import { updateStamp, type World } from '../world.js'
import { answerCollection } from './answer-collection.js'
import { describeInterface } from './build-unmanaged.js'
import { linkState } from './link-state.js'

const CREATE = new Shape(
  'workloads_interfaces_post',
  Type.Object(
    {
      name: Type.String({ minLength: 1 }),
      link_state: OneOf('up', 'down', 'unknown'),
      address: Type.Optional(Type.String()),
      cidr_block: Type.Optional(Type.Integer()),
      default_gateway_address: Type.Optional(Type.String()),
      friendly_name: Type.Optional(Type.String()),
    },
    CLOSED,
  ),
)

type Interface = Json & { name: string }

/**
 * The routes of the individual network interfaces of a workload (P13, P16). The interfaces of a managed workload cannot
 * be written, because its VEN reports them.
 */
export const workloadInterfaceRoutes: Route[] = [
  {
    path: '/orgs/:org/workloads/:workload/interfaces',
    verbs: {
      GET: {
        handle: (call) => {
          const workload = requireOwner(call)
          return answerCollection(call, {
            objects: interfacesOf(workload).map((one) => render(call.world, workload, one)),
            filters: { name: partial('name') },
            render: (one) => one,
          })
        },
      },
      POST: {
        event: 'workload_interface.create',
        handle: (call) => {
          const workload = requireUnmanaged(call)
          const sent = CREATE.read(call.body)
          for (const address of [sent.address, sent.default_gateway_address]) {
            if (address !== undefined && isIP(address) === 0)
              throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
          }
          const known = interfacesOf(workload)
          if (known.some(({ name, address }) => name === sent.name && address === sent.address)) {
            throw invalidInput(`The workload has an interface ${sent.name} with this address`)
          }
          const made = describeInterface(sent) as Interface
          const changes = [replace(call.world, workload, [...known, made], 'create')]
          return { status: 201, json: render(call.world, workload, made), changes }
        },
      },
    },
  },
  {
    path: '/orgs/:org/workloads/:workload/interfaces/:name',
    verbs: {
      GET: {
        handle: (call) => {
          const workload = requireOwner(call)
          return { status: 200, json: render(call.world, workload, named(workload, call)[0]!) }
        },
      },
      DELETE: {
        event: 'workload_interface.delete',
        handle: (call) => {
          const workload = requireUnmanaged(call)
          const gone = named(workload, call)
          const rest = interfacesOf(workload).filter((one) => !gone.includes(one))
          return { status: 204, changes: [replace(call.world, workload, rest, 'delete')] }
        },
      },
    },
  },
]

function requireOwner({ world, path }: Call): PceObject {
  const workload = world.workloads.get(path.replace(/\/interfaces.*$/, ''))
  if (!workload || workload.deleted === true) throw notFound()
  return workload
}

function requireUnmanaged(call: Call): PceObject {
  const workload = requireOwner(call)
  if (workload.managed === true) {
    const { errors } = invalidInput('The interfaces of a managed workload cannot be changed')
    throw new Refusal(UNCERTAIN.managedInterfaceStatus, errors)
  }
  return workload
}

function interfacesOf(workload: PceObject): Interface[] {
  return (workload.interfaces ?? []) as Interface[]
}

/**
 * Finds the interfaces of a workload with the requested name. A name can occur once for each address, for instance for
 * IPv4 and IPv6 (P16).
 */
function named(workload: PceObject, { params }: Call): Interface[] {
  const found = interfacesOf(workload).filter(({ name }) => name === params.name)
  if (found.length === 0) throw notFound()
  return found
}

function render(world: World, workload: PceObject, { loopback: _ours, ...one }: Interface): PceObject {
  return {
    cidr_block: null,
    default_gateway_address: null,
    network: null,
    network_detection_mode: null,
    friendly_name: null,
    ...one,
    link_state: linkState(world, workload, one),
    href: `${workload.href}/interfaces/${encodeURIComponent(one.name)}`,
  }
}

function replace(world: World, workload: PceObject, interfaces: Interface[], type: 'create' | 'delete'): Change {
  world.workloads.set({ ...workload, interfaces, ...updateStamp(world) })
  const resource = { workload: { href: workload.href, name: workload.name ?? workload.hostname } }
  return { resource, type, changes: { interfaces: { before: workload.interfaces ?? [], after: interfaces } } }
}
