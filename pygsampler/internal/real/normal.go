package real

import "math"

// The coefficients of the quantile's three quotients, the highest power first: of the middle, of tails
// and of far tails (M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37, 1988).
var (
	middleOver = [8]float64{
		2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
		1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
	}
	middleUnder = [8]float64{
		5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
		5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1,
	}
	tailOver = [8]float64{
		7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
		3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
	}
	tailUnder = [8]float64{
		1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
		6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1,
	}
	farOver = [8]float64{
		2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
		2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
	}
	farUnder = [8]float64{
		2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
		1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1,
	}
)

// Coefficients of the quotient of the distribution (J. F. Hart et al., "Computer Approximations",
// 1968, 5666 of ERFC). Far from 0 the continued fraction replaces it, since the quotient has no
// relative accuracy there.
var (
	belowOver = [7]float64{
		3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931, 220.206867912376,
	}
	belowUnder = [8]float64{
		8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831, 793.826512519948,
		440.413735824752,
	}
)

func polynomial(of []float64, x float64) float64 {
	y := of[0]
	for _, c := range of[1:] {
		y = float64(y*x) + c
	}
	return y
}

// NormalQuantile returns the quantile of the standard normal distribution at p, for p in (0, 1).
func NormalQuantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return float64(q*polynomial(middleOver[:], r)) / polynomial(middleUnder[:], r)
	}
	r := math.Sqrt(-Log(min(p, 1-p)))
	var z float64
	if r <= 5 {
		z = polynomial(tailOver[:], r-1.6) / polynomial(tailUnder[:], r-1.6)
	} else {
		z = polynomial(farOver[:], r-5) / polynomial(farUnder[:], r-5)
	}
	if q < 0 {
		return -z
	}
	return z
}

// NormalBelow returns the standard normal distribution function at x, the probability of a smaller
// number. Its relative error is small, also next to 0.
func NormalBelow(x float64) float64 {
	z := math.Abs(x)
	below := Exp(float64(float64(-z*z) / 2))
	if z < 3 {
		below = float64(below*polynomial(belowOver[:], z)) / polynomial(belowUnder[:], z)
	} else {
		fraction := z
		for k := 32.0; k > 0; k-- {
			fraction = z + k/fraction
		}
		below = below / fraction / 2.5066282746310002
	}
	if x > 0 {
		return 1 - below
	}
	return below
}

// Quarter returns cosine and sine of the fraction j / k of a right angle, for j from 0 to k.
func Quarter(j, k uint64) (cos, sin float64) {
	// The angle is reduced to at most half a right angle, where few terms are enough.
	turned := 2*j > k
	if turned {
		j = k - j
	}
	x := float64(float64(j)/float64(k)) * (math.Pi / 2)
	z := float64(x * x)
	cos, sin = 1, 1
	for n := 18.0; n > 0; n -= 2 {
		cos = 1 - float64(float64(z/float64(n*(n-1)))*cos)
		sin = 1 - float64(float64(z/float64(n*(n+1)))*sin)
	}
	sin = float64(x * sin)
	if turned {
		return sin, cos
	}
	return cos, sin
}
