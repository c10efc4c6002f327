// node apollo.mjs URL TOKEN
import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { done, step } from './steps.mjs'

const [url, token] = process.argv.slice(2)
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: new HttpLink({ uri: `${url}/graphql`, headers: { authorization: `Bearer ${token}` } }),
})

const made = await step('create', async () => {
  const mutation = gql`mutation Make($input: UserCreate!) { createUser(input: $input) { id name } }`
  const { data } = await client.mutate({ mutation, variables: { input: { name: 'Apollo', email: 'apollo@fit.example' } } })
  return data.createUser
})
await step('read', async () => {
  const query = gql`query One($id: ID!) { user(id: $id) { id name email } }`
  const { data } = await client.query({ query, variables: { id: made.id } })
  return { name: data.user.name, email: data.user.email }
})
done()
