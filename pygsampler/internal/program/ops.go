package program

// Op is the operator of a node.
type Op uint8

// The operators, by what they make.
const (
	// Lists of nodes.
	Seeds  Op = iota // with repetitions, in order
	Column           // of a matrix: its columns, which are distinct
	Row              // of a matrix: the rows of its edges, distinct, by first occurrence
	Union            // of two lists: distinct, by first occurrence
	Unique           // of a list: likewise
	Concat           // of two lists: one behind the other
	Pick             // of a list: those where a vector along it is not 0
	Draw             // k nodes by a vector, along a list or of all nodes
	Roots            // k of all nodes, uniformly and with replacement
	Walk             // of a list: where walkers from its nodes are, at first and after each of k steps

	// Matrices of the graph's edges.
	Whole // A: all edges
	Slice // A[:, list]: all in-edges of the list's nodes
	Cross // A[list, list]: the edges from nodes of the first to such of the second
	Data  // a matrix's edges with the values of an edge array

	// Matrices of some edges of another.
	Individual // k edges a column
	Collective // those of k rows
	Dependent  // those that go together by their chances, so that their number is no chance
	Filter     // those whose value of a mask is not 0
	TopK       // the k largest a column
	Extract    // of a matrix: the columns of a list's nodes, as a Slice has the graph's

	Merge // of two matrices with the same columns: in each those of the first, then those of the second

	// Data of all graph nodes.
	Vertices // a node array
	Degree   // in-degrees
	Number   // their ids

	// Maps, of scalars, vectors and matrices.
	Const
	Random // a uniform number in (0, 1)
	Neg
	Abs
	Sqrt
	Exp
	Log
	Relu
	Not
	Add
	Sub
	Mul
	Div
	Pow
	Min
	Max
	Less
	LessEqual
	Equal
	NotEqual
	Where       // the second where the first is not 0, else the third
	Independent // a matrix's edges with the numbers of their rows; of parallel edges the first, the others with some of their own
	Spread      // a matrix's edges with the values of a vector

	// Reductions of a matrix along an axis to a vector, and of a vector to a scalar.
	Sum
	Mean
	Largest
	Smallest
	Count // edges of a matrix, elements of a vector

	// Vectors.
	Times  // of a Collective: how often each of its rows was drawn
	Gather // a vector's elements of the nodes of a list
	IsIn   // of two lists: along the first, 1 for nodes that stand in the second, else 0
	Cap    // chances in the ratio of a vector's elements, of which k is the sum
	Labor  // of two matrices: for each column the factor of LABOR's chances of k edges
	Level  // of a matrix and a vector along its columns: for each column the factor of chances with the sum that it says

	// Dense rows, and operators on them.
	Features // a node array of rows
	Take     // the rows of the nodes of a list
	Project  // each row times an input, a matrix
	Dot      // a matrix's edges with the product of the row of where they come from and that of where they lead to
	Item     // an element of an input
	Multiply // a matrix times dense rows: for each of its rows, or columns, the sum of its edges' values times rows
	Entry    // a number of each row

	Kept // of a matrix: 1 where the batch does not leave the edge out

	numOps
)

// spec is the name of an operator, and the format of its node.
type spec struct {
	name  string
	in    string // of each input: l list, m matrix, v vector, d dense rows, x a matrix, a vector or a scalar; ? the one before may be missing
	attrs string // names of attributes, with blanks between
}

// specs are the operators' texts: `name in, in attr=value`.
var specs = [numOps]spec{
	Seeds:  {"seeds", "", ""},
	Column: {"column", "m", ""}, Row: {"row", "m", ""},
	Union: {"union", "ll", ""}, Unique: {"unique", "l", ""}, Concat: {"concat", "ll", ""},
	Pick: {"pick", "lv", ""}, Draw: {"draw", "v", "k replace site"},
	Roots: {"roots", "", "k site"}, Walk: {"walk", "l", "k site"},
	Whole: {"whole", "", ""}, Slice: {"slice", "l", ""}, Cross: {"cross", "ll", ""}, Data: {"data", "m", "name"},
	Individual: {"individual", "mm?", "k replace site"}, Collective: {"collective", "mv?", "k replace site"},
	Dependent: {"dependent", "mm", "site"},
	Filter:    {"filter", "mm", ""}, TopK: {"top_k", "mm", "k"}, Extract: {"extract", "ml", ""}, Merge: {"merge", "mm", ""},
	Vertices: {"vertices", "", "name"}, Degree: {"degree", "", ""}, Number: {"number", "", ""},
	Const: {"const", "", "value"}, Random: {"random", "m?", "site batches"},
	Neg: {"neg", "x", ""}, Abs: {"abs", "x", ""}, Sqrt: {"sqrt", "x", ""}, Exp: {"exp", "x", ""}, Log: {"log", "x", ""},
	Relu: {"relu", "x", ""}, Not: {"not", "x", ""},
	Add: {"add", "xx", "axis"}, Sub: {"sub", "xx", "axis"}, Mul: {"mul", "xx", "axis"}, Div: {"div", "xx", "axis"},
	Pow: {"pow", "xx", "axis"}, Min: {"min", "xx", "axis"}, Max: {"max", "xx", "axis"},
	Less: {"lt", "xx", "axis"}, LessEqual: {"le", "xx", "axis"}, Equal: {"eq", "xx", "axis"}, NotEqual: {"ne", "xx", "axis"},
	Where: {"where", "xxx", ""}, Independent: {"independent", "mv", "axis"}, Spread: {"spread", "mv", "axis"},
	Sum: {"sum", "x", "axis"}, Mean: {"mean", "x", "axis"}, Largest: {"largest", "x", "axis"}, Smallest: {"smallest", "x", "axis"},
	Count: {"count", "x", "axis"},
	Times: {"times", "m", ""}, Gather: {"gather", "vl", ""}, IsIn: {"isin", "ll", ""}, Cap: {"cap", "v", "k"},
	Labor: {"labor", "mm", "k"}, Level: {"level", "mv", ""},
	Features: {"features", "", "name"}, Take: {"take", "dl", ""}, Project: {"project", "d", "name"}, Dot: {"dot", "mdd", ""},
	Item:     {"item", "", "name k"},
	Multiply: {"multiply", "md", "axis"}, Entry: {"entry", "d", "k"},
	Kept: {"kept", "m", ""},
}

// String returns the name of the operator in texts.
func (o Op) String() string { return specs[o].name }
