package edges

import (
	"strings"
	"testing"
)

func TestTwoKindsAreNoticed(t *testing.T) {
	for names, want := range map[string]string{
		"user_id,item_id": "user item", "userId,movieId": "user movie", "item,user": "item user",
		"UserID,ItemID": "user item", "userid,itemid": "user item", "author_id,paper_id": "author paper",
		"customer_id,product_id": "customer product", "drug id,disease id": "drug disease",
		"user_group_id,event_id": "user_group event", "gene1_id,disease2_id": "gene disease",

		"src,dst": "", "source_id,target_id": "", "from,to": "", "u,v": "", "u_id,v_id": "", "uid,iid": "",
		"node1,node2": "", "id_1,id_2": "", "id,parent_id": "", "paper_id,cited_paper_id": "", "a,b": "",
		"fromNodeId,toNodeId": "", ":START_ID,:END_ID": "", "follower_id,followee_id": "", "payer_id,payee_id": "",
		"user_id,friend_id": "", "employee_id,manager_id": "", "seller_id,buyer_id": "", "author_id,coauthor_id": "",
		"user1_id,user2_id": "", "userA_id,userB_id": "", "protein_a_id,protein_b_id": "", "callerId,calleeId": "",
		"OriginAirportID,DestAirportID": "", "station_id,next_station_id": "", "person,city": "", "buyer,article": "",
		"head_id,tail_id": "", "citing,cited": "", "user_id,": "", ",": "", "id,id": "", "sender_id,recipient_id": "",
	} {
		first, second, _ := strings.Cut(names, ",")
		a, b, two := twoKinds(first, second)
		if got := strings.TrimSpace(a + " " + b); got != want || two != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", names, got, two, want)
		}
	}
}

func TestTwoKindsAreAnError(t *testing.T) {
	names := []string{"user_id", "item_id", "time"}
	for _, given := range [][2]Column{{}, {named("user_id"), named("item_id")}, {nth(0), nth(1)}} {
		_, err := pick("e", names, given[0], given[1])
		want := "e: expected two columns of one kind of nodes, got 'user_id' and 'item_id'"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", given, err, want)
		}
		given[0].Mixed = true
		if c, err := pick("e", names, given[0], given[1]); err != nil || c.src != 0 || c.dst != 1 {
			t.Errorf("%v: got %v, %v", given, c, err)
		}
	}
}

func TestColumnsAreFoundByType(t *testing.T) {
	for names, want := range map[string][2]int{
		"movie_id,userId": {1, 0}, "time,Movie,user": {2, 1}, "src,dst": {0, 1}, "user_id,user,movie,src,dst": {3, 4},
	} {
		c, err := pick("e", strings.Split(names, ","), Column{Mixed: true, Of: "user"}, Column{Of: "movie"})
		if err != nil || [2]int{c.src, c.dst} != want {
			t.Errorf("%s: got %v, %v, want %v", names, c, err, want)
		}
	}
}
